"""Calls in the text of a model: found however the text is cut, told as they are written."""

from __future__ import annotations

import json

import pytest

from pipelines.stages.llm_sglang_calls import CallEnd, CallPiece, CallReader, Found, Words

TOOLS = {"weather", "clock", "größe"}


def read(text: str, size: int) -> list[Found]:
    reader = CallReader(TOOLS)
    found: list[Found] = []
    for at in range(0, len(text), size):
        found += reader.feed(text[at : at + size])
    return found + reader.rest()


def words(found: list[Found]) -> str:
    return "".join(part.text for part in found if isinstance(part, Words))


def calls(found: list[Found]) -> list[tuple[str, str]]:
    made: list[tuple[str, str]] = []
    for part in found:
        if isinstance(part, CallPiece):
            name, arguments = (part.name, "") if part.name else made.pop()
            made.append((name, arguments + part.arguments))
    return made


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "said", "called"),
    [
        ("Hello <b>you</b>, 1 < 2.", "Hello <b>you</b>, 1 < 2.", []),
        ("Ends <tool", "Ends <tool", []),
        (
            'I look.\n<tool_call>\n{"name": "weather", "arguments": {"a": "}]\\"{"}}\n</tool_call>',
            "I look.\n",
            [("weather", '{"a": "}]\\"{"}')],
        ),
        (
            '<tool_call>{"name":"weather","arguments":{"n":[1,{"b":2}]}}</tool_call>\n'
            '<tool_call>\n{"name": "clock", "parameters": {}}\n</tool_call>',
            "\n",
            [("weather", '{"n":[1,{"b":2}]}'), ("clock", "{}")],
        ),
        (
            '<tool_call>{"arguments": {"a": 1}, "name": "weather"}</tool_call>',
            "",
            [("weather", '{"a": 1}')],
        ),
        (
            '<tool_call>{"name": "weather", "arguments": "{\\"a\\": 1}"}</tool_call>',
            "",
            [("weather", '{"a": 1}')],
        ),
        ('<tool_call>{"name": "clock"}</tool_call>', "", [("clock", "{}")]),
        (
            '<tool_call>{"arguments": {"a": "</tool_call>\\"x"}, "name": "weather"}</tool_call>b',
            "b",
            [("weather", '{"a": "</tool_call>\\"x"}')],
        ),
        (
            '<tool_call>{"name": "weather", "arguments": {"a": "</tool_call>"}}</tool_call>b',
            "b",
            [("weather", '{"a": "</tool_call>"}')],
        ),
        (
            '<tool_call>{"name": "clock", "arguments": {}}\n<tool_call>'
            '{"name": "weather", "arguments": {"a": 1}}\n</tool_call>b',
            "b",
            [("clock", "{}"), ("weather", '{"a": 1}')],
        ),
        ('a<tool_call>say "this</tool_call>b', "ab", []),
        (
            'a<tool_call>{"name: 1}</tool_call>b'
            '<tool_call>{"name": "clock", "arguments": {}}</tool_call>c',
            "abc",
            [("clock", "{}")],
        ),
        ('<tool_call>{"name": "gr\\u00f6\\u00dfe", "arguments": {}}</tool_call>', "",
         [("größe", "{}")]),
        ('a<tool_call>{"name": "rm", "arguments": {"x": 1}}</tool_call>b', "ab", []),
        ("a<tool_call>not json at all</tool_call>b", "ab", []),
        ("a<tool_call>[1]</tool_call>b", "ab", []),
        ('a<tool_call>{"name": "weather", ', "a", []),
    ],
)  # fmt: skip
def test_text_is_split_into_words_and_calls(
    text: str, said: str, called: list[tuple[str, str]], size: int
) -> None:
    found = read(text, size)
    assert (words(found), calls(found)) == (said, called)
    assert sum(isinstance(part, CallEnd) for part in found) == len(called)


def test_arguments_are_told_while_they_are_written() -> None:
    reader = CallReader(TOOLS)
    assert reader.feed('<tool_call>{"name": "weather", "arguments": ') == []
    assert reader.feed('{"city": "Lis') == [
        CallPiece("weather", ""),
        CallPiece("", '{"city": "Lis'),
    ]
    assert reader.feed('bon"') == [CallPiece("", 'bon"')]
    assert reader.feed("}}\n</tool_call> ") == [CallPiece("", "}"), CallEnd(), Words(" ")]
    assert not reader.is_inside


def test_a_call_nested_beyond_reason_is_no_call() -> None:
    deep = "[" * 100_000
    assert calls(read(f'<tool_call>{{"arguments": {deep}</tool_call>', 10_000)) == []


def test_arguments_that_were_told_are_whole_json() -> None:
    value = {"a": [1, {"b": 'quote " brace } back \\'}], "c": None}
    text = f"<tool_call>\n{json.dumps({'name': 'clock', 'arguments': value})}\n</tool_call>"
    [(_, arguments)] = calls(read(text, 1))
    assert json.loads(arguments) == value
