"""Calls in the text of a small model are told from speech, however the text is cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.stages.llama_tools import (
    CallReader,
    as_openai,
    instructions,
    message_as_openai,
    offered,
    schema_of_call,
)
from pipelines.types import Message, ToolCall, ToolSpec

WEATHER = ToolSpec("weather", "of a city", '{"type": "object"}')
CLOCK = ToolSpec("clock", "the time", '{"type": "object"}')
CALL = '{"name": "weather", "arguments": {"city": "Lisbon"}}'


def read(pieces: list[str]) -> tuple[list[tuple[str, str]], str]:
    reader = CallReader((WEATHER, CLOCK))
    text = "".join(reader.feed(piece) for piece in pieces)
    calls, rest = reader.finish()
    return [(call.name, call.arguments) for call in calls], text + rest


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"\n {CALL}",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"```json\n{CALL}\n```",
        '{{"name": "weather", "arguments": {"city": "Lisbon"}}}',
        '{"name": "weather", "parameters": {"city": "Lisbon"}}',
        f"{CALL}\nThe weather in Lisbon is fine.",
    ],
)
def test_a_call_is_read(text: str) -> None:
    calls, said = read([text])
    assert [(name, json.loads(arguments)) for name, arguments in calls] == [
        ("weather", {"city": "Lisbon"})
    ]
    assert said == ""


def test_two_calls_are_two() -> None:
    calls, _ = read([CALL + "\n" + '{"name": "clock", "arguments": {}}'])
    assert [name for name, _ in calls] == ["weather", "clock"]


@pytest.mark.parametrize(
    "text",
    [
        "It is fine in Lisbon.",
        '{"temperature": 19}',
        '{"name": "unknown", "arguments": {}}',
        '{"name": "weather", "arguments": "Lisbon"}',
        '{"name": "weather", "argum',
        "{",
        "",
        "<tool_call> is a tag.",
    ],
)
def test_what_is_no_call_is_said_in_full(text: str) -> None:
    assert read([text]) == ([], text)


@given(st.lists(st.integers(1, 60), max_size=8).map(sorted))
def test_the_cuts_of_the_text_do_not_matter(cuts: list[int]) -> None:
    for text in (f"<tool_call>{CALL}</tool_call>", "Well, {that} is fine."):
        edges = [0, *cuts, len(text)]
        pieces = [text[left:right] for left, right in zip(edges, edges[1:], strict=False)]
        assert read(pieces) == read([text])


def test_plain_text_is_not_held_back() -> None:
    reader = CallReader((WEATHER,))
    assert reader.feed("It ") == "It "
    assert CallReader(()).feed("{") == "{"


def test_the_choice_of_tools() -> None:
    tools = (WEATHER, CLOCK)
    assert offered(tools, "auto") == offered(tools, "required") == tools
    assert offered(tools, "none") == ()
    assert offered(tools, "clock") == (CLOCK,)
    assert schema_of_call((CLOCK,))["properties"]["name"] == {"const": "clock"}
    assert len(schema_of_call(tools)["anyOf"]) == 2


def test_the_form_for_templates() -> None:
    call = ToolCall("c1", "weather", "{}")
    asked = message_as_openai(Message("assistant", "", (call,)))
    assert asked["tool_calls"][0]["function"] == {"name": "weather", "arguments": "{}"}
    assert message_as_openai(Message("tool", "19 C", call_id="c1"))["tool_call_id"] == "c1"
    assert as_openai(WEATHER)["function"]["parameters"] == {"type": "object"}
    assert '"weather"' in instructions((WEATHER,))
    with pytest.raises(ValueError):
        as_openai(ToolSpec("broken", "", "{"))
