"""Calls in the text of a small model are told from speech, however the text is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.stages.llama_calls import CallWatch, closing

CALL = '{"name": "weather", "arguments": {"city": "Lisbon"}}'


def watched(
    pieces: list[str], tools: tuple[str, ...] = ("clock", "weather")
) -> tuple[str, str | None]:
    """What is said, and how the call was opened that came in between."""
    watch = CallWatch(tools)
    said = "".join(watch.feed(piece) for piece in pieces)
    return said + watch.rest(), watch.opening


FORMS = [
    (CALL, ""),
    (f"\n {CALL}", ""),
    (f"<tool_call>\n{CALL}\n</tool_call>", "<tool_call>\n"),
    (f"<tools>\n{CALL}\n</tools>", "<tool_call>\n"),
    (f"<function_call>{CALL}</function_call>", "<tool_call>\n"),
    (f"```json\n{CALL}\n```", "```json\n"),
    (f"```\n{CALL}\n```", "```json\n"),
    ('{{"name": "weather", "arguments": {"city": "Lisbon"}}}', ""),
    ('{ "name" : "weather"}', ""),
    ('{"arguments": {"city": "Lisbon"}, "name": "weather"}', ""),
    ('{"function": "weather"}', ""),
    ('{"function": {"name": "weather", "arguments": {}}}', ""),
    ('{"parameters": {"note": "a \\"}{", "at": {}}, "name": "weather"}', ""),
    ('{\n  "name": "weather"\n}', ""),
]


@pytest.mark.parametrize(("text", "opening"), FORMS)
def test_a_call_is_noticed_and_none_of_it_is_said(text: str, opening: str) -> None:
    said, opened = watched([text])
    assert (said.strip(), opened) == ("", opening)
    said, opened = watched(list(text))
    assert (said.strip(), opened) == ("", opening)


@pytest.mark.parametrize(("text", "opening"), FORMS)
def test_words_before_a_call_are_said(text: str, opening: str) -> None:
    before = "Let me look.\n"
    assert watched([before + text]) == watched(list(before + text))
    said, opened = watched(list(before + text))
    assert (said.strip(), opened) == ("Let me look.", opening)


def test_a_tag_may_stand_anywhere_and_an_object_only_at_the_start_of_a_line() -> None:
    assert watched([f"Well: <tool_call>{CALL}"]) == ("Well: ", "<tool_call>\n")
    assert watched([f"Well: {CALL}"]) == (f"Well: {CALL}", None)


@pytest.mark.parametrize(
    "text",
    [
        "It is fine in Lisbon.",
        '{"temperature": 19}',
        '{"name": "Ann", "age": 3}',
        '```json\n{"name": "Ann", "age": 3}\n```',
        '{"name": "weatherman"}',
        '{"name": 7, "arguments": {}}',
        '{"arguments": [1], "name": "weather"}',
        '{"arguments": {"name": "weather"}}',
        '{"arguments": {"a": 1}, "age": 3}',
        '{"arguments": {"a": 1',
        '{"function": {"name": "Ann"}}',
        '{"name": "weat',
        '{"names": ["a"]}',
        "{that} is fine.",
        "```python\nprint(1)\n```",
        '```json\n{"a": 1}\n```',
        "{",
        '{"name',
        "",
        "<tool_calls> is no tag, 3 < 4, and `code` is none.",
        "<tool",
        "a ``` b {",
    ],
)
def test_what_is_no_call_is_said_in_full(text: str) -> None:
    assert watched([text]) == (text, None)
    assert watched(list(text)) == (text, None)


def test_an_object_is_a_call_only_of_a_known_tool_and_tags_are_one_of_any() -> None:
    text = '{"name": "weather", "arguments": {}}'
    for pieces in ([text], list(text)):
        assert watched(pieces, ()) == (text, None)
        assert watched(pieces, ("we",)) == (text, None)
        assert watched(["<tool_call>", *pieces], ()) == ("", "<tool_call>\n")
    for text in ('{"name": "größe"}', '{"name": "gr\\u00f6\\u00dfe"}'):
        assert watched(list(text), ("größe",)) == ("", "")


def test_an_object_is_said_as_soon_as_it_names_no_tool() -> None:
    watch = CallWatch(("weather",))
    assert watch.feed('{"name": "') == ""
    assert watch.feed("A") == '{"name": "A'
    assert watch.feed('nn"}') == 'nn"}'


@given(st.lists(st.integers(1, 60), max_size=8).map(sorted), st.integers(0, len(FORMS) - 1))
def test_the_cuts_of_the_text_do_not_matter(cuts: list[int], form: int) -> None:
    for text in (FORMS[form][0], f"Yes.\n{FORMS[form][0]}", "Well, {that} is fine <tool ."):
        edges = [0, *cuts, len(text)]
        pieces = [text[left:right] for left, right in zip(edges, edges[1:], strict=False)]
        assert watched(pieces) == watched([text])


def test_plain_text_is_not_held_back() -> None:
    watch = CallWatch(())
    assert watch.feed("It ") == "It "
    assert watch.feed("is {fine} ") == "is {fine} "


def test_every_opening_has_its_closing() -> None:
    assert closing("<tool_call>\n") == "\n</tool_call>"
    assert {closing(opening) for _, opening in FORMS} == {"", "\n</tool_call>", "\n```"}
