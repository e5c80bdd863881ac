"""Word ends in display text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.displayed import displayed
from pipelines.types import WordEnd

#        in  42 (forty, two) days
PLACES = {0: 0, 2: 2, 8: 2, 12: 5, 17: 10}


def shown(*words: tuple[int, int], said_end: int = 0, shown_end: int = 0) -> list[tuple[int, int]]:
    ends = tuple(WordEnd(samples, text_end) for samples, text_end in words)
    found = displayed(ends, lambda end: PLACES[end], said_end, shown_end)
    return [(word.samples, word.text_end) for word in found]


def test_a_number_is_one_word() -> None:
    assert shown((10, 2), (20, 8), (30, 12), (40, 17)) == [(10, 2), (30, 5), (40, 10)]


def test_pauses_lie_between_words_and_not_inside_a_number() -> None:
    said = ((5, 0), (10, 2), (15, 2), (20, 8), (25, 8), (30, 12), (35, 12), (40, 17))
    assert shown(*said) == [(5, 0), (10, 2), (15, 2), (30, 5), (35, 5), (40, 10)]


def test_a_pause_may_come_first() -> None:
    assert shown((15, 2), (20, 8), said_end=2, shown_end=2) == [(15, 2)]


def test_nothing_that_was_shown_is_taken_back() -> None:
    assert shown((10, 2), (30, 12), (40, 17), shown_end=7) == [(40, 10)]


@given(st.lists(st.sampled_from(sorted(PLACES)), max_size=12))
def test_ends_ascend(ends: list[int]) -> None:
    found = shown(*((place, end) for place, end in enumerate(sorted(ends))))
    assert found == sorted(found)
