"""What a model thinks before it answers is left out, however the text was cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.reasoning import LONGEST_BLANK_CHARS, OPENINGS, ReasoningFilter
from tests.pipelines.waiting import UNHURRIED


def answer(*pieces: str) -> str:
    reading = ReasoningFilter()
    return "".join(reading.feed(piece) for piece in pieces) + reading.finish()


@pytest.mark.parametrize(
    ("text", "answered"),
    [
        ("<think>hm, so</think>\n\nIt is four.", "It is four."),
        ("\n<think>\n\n</think>\n\nIt is four.", "It is four."),
        ("<think>a</think> <think>b</think> Yes.", "Yes."),
        ("<thinking>a < b </think> no</thinking>Yes.", "Yes."),
        ("<think></think>", ""),
        ("<think>never ends", ""),
        ("It is <think>four</think>.", "It is <think>four</think>."),
        ("<thin air>", "<thin air>"),
        ("  <", "  <"),
        ("<think", "<think"),
        ("<think>a</think><", "<"),
        ("  Hello", "  Hello"),
        ("", ""),
    ],
)
def test_only_what_opens_the_text_is_reasoning(text: str, answered: str) -> None:
    assert answer(text) == answered
    assert answer(*text) == answered


PARTS = [
    "<think>",
    "</think>",
    "<",
    "think",
    ">",
    " ",
    "\n",
    "hm",
    "Yes.",
    "</thinking>",
    *OPENINGS,
]


@UNHURRIED
@given(st.lists(st.sampled_from(PARTS), max_size=12), st.data())
def test_the_answer_does_not_depend_on_where_the_text_was_cut(
    parts: list[str], data: st.DataObject
) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert answer(*pieces) == answer(text)
    if "<" not in text:
        assert answer(*pieces) == text


def test_an_answer_leaves_at_once() -> None:
    reading = ReasoningFilter()
    assert reading.feed("Hello") == "Hello"
    reading = ReasoningFilter()
    assert reading.feed("<think>hm</think>\nYe") == "Ye"
    assert reading.feed("s, <think>") == "s, <think>"


def test_little_is_held_however_long_the_reasoning_is() -> None:
    reading = ReasoningFilter()
    assert reading.feed("<think>") == ""
    for _ in range(10_000):
        assert reading.feed("so ") == ""
    assert reading.feed("</think>No.") == "No."
    blank = ReasoningFilter()
    assert len(blank.feed(" " * 10_000)) == 10_000
    assert len(ReasoningFilter().feed(" " * LONGEST_BLANK_CHARS)) == 0
