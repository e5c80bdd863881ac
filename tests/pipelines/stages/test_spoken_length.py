"""A spoken reply ends at a sentence, however its text came in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.stages.spoken_length import SpokenLength


def said(pieces: list[str], enough_words: int) -> str:
    length = SpokenLength(enough_words)
    return "".join(length.cut(piece) for piece in pieces)


def split(text: str, places: list[int]) -> list[str]:
    borders = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    return [text[a:b] for a, b in zip(borders, borders[1:], strict=False)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two. Three four. Five six.", "One two. Three four."),
        ("One two three four five six", "One two three four five six"),
        ("One two three. ", "One two three."),
        ("I like it: 1. red wine and 2. blue. Then", "I like it: 1. red wine and 2. blue."),
        ("He said 'no way.' Then he left.", "He said 'no way.'"),
        ("First one here\nSecond", "First one here"),
        ("One two.", "One two."),
    ],
)
@given(places=st.lists(st.integers(0, 100), max_size=8))
def test_it_ends_at_the_first_sentence_that_is_enough(
    text: str, expected: str, places: list[int]
) -> None:
    assert said(split(text, places), enough_words=3) == expected


def test_it_is_over_once_enough_was_said() -> None:
    length = SpokenLength(2)
    assert length.cut("Well, yes. And") == "Well, yes."
    assert length.is_enough
    assert length.cut(" more. ") == ""
