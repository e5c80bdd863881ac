"""Words of what is said, found again in the text that it was made from."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.word_places import word_places


def covered(said: str, text: str) -> list[str]:
    """For each word of `said`, the text up to its end."""
    return [text[:end] for _, end in sorted(word_places(said, text).items())]


def test_words_of_the_same_text_are_at_their_own_places() -> None:
    assert covered("one two,  three", "one two,  three") == ["one", "one two,", "one two,  three"]


def test_white_space_may_differ() -> None:
    assert covered("one two", " one\n two ") == [" one", " one\n two"]


def test_a_word_that_is_said_as_several_ends_with_the_last() -> None:
    assert covered("in forty two days", "in 42 days") == ["in", "in", "in 42", "in 42 days"]


def test_words_that_are_not_said_go_with_the_next() -> None:
    assert covered("one two", "one 🎉 two") == ["one", "one 🎉 two"]


def test_other_words_share_the_text_by_letters() -> None:
    said, text = "start aaaa bb cc end", "start xxxxxxxx yyyyyyyy end"
    assert covered(said, text) == [
        "start",
        "start xxxxxxxx",
        "start xxxxxxxx",
        "start xxxxxxxx yyyyyyyy",
        text,
    ]


@pytest.mark.parametrize(("said", "text"), [("", ""), ("", "one"), ("one", ""), (" ", "\n")])
def test_nothing_has_no_places(said: str, text: str) -> None:
    assert set(word_places(said, text).values()) <= {0}


@given(st.text("ab 1.\n", max_size=40), st.text("ab 1.\n", max_size=40))
def test_places_are_ends_of_words_and_never_decrease(said: str, text: str) -> None:
    places = word_places(said, text)
    assert list(places) == [word.end() for word in re.finditer(r"\S+", said)]
    ends = list(places.values())
    assert ends == sorted(ends)
    assert set(ends) <= {0, *(word.end() for word in re.finditer(r"\S+", text))}
