from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.chunker import Utterance, WordSpan
from pipelines.text.narration import Narration
from pipelines.text.positions import Positions, displayed
from pipelines.types import WordEnd
from tests.pipelines.text.snippets import TEXTS
from tests.pipelines.waiting import UNHURRIED


def test_a_word_is_covered_when_all_of_it_was_heard() -> None:
    positions = Positions()
    positions.add(Utterance("one two ", (WordSpan(3, 5), WordSpan(7, 12)), 12))
    positions.add(Utterance("three", (WordSpan(5, 20),), 20))
    heard = (0, 2, 3, 6, 7, 8, 12, 13, 99)
    assert [positions.to_display(n) for n in heard] == [0, 0, 5, 5, 12, 12, 12, 20, 20]


def test_what_cannot_be_spoken_goes_with_what_came_before() -> None:
    positions = Positions()
    positions.add(Utterance("", (), 3))
    assert positions.to_display(0) == 0
    positions.add(Utterance("one ", (WordSpan(3, 13),), 13))
    positions.add(Utterance("", (), 30))
    positions.add(Utterance("two", (WordSpan(3, 34),), 34))
    assert [positions.to_display(n) for n in (2, 3, 4, 6, 7)] == [0, 30, 30, 30, 34]


def test_a_sum_of_money_is_covered_by_its_last_word() -> None:
    positions = Positions()
    narration = Narration()
    for utterance in narration.feed("It is $5.50 now") + narration.finish():
        positions.add(utterance)
    said = "It is five dollars and fifty cents now"
    covered = {word: positions.to_display(said.index(word) + len(word)) for word in said.split()}
    assert covered == {
        "It": 3,
        "is": 6,
        "five": 6,
        "dollars": 6,
        "and": 6,
        "fifty": 6,
        "cents": 12,
        "now": 15,
    }


@UNHURRIED
@given(st.lists(st.sampled_from(TEXTS), max_size=5))
def test_positions_never_go_back_and_end_at_the_end(texts: list[str]) -> None:
    positions = Positions()
    narration = Narration()
    spoken = 0
    for utterance in [one for text in texts for one in narration.feed(text)] + narration.finish():
        positions.add(utterance)
        spoken += len(utterance.spoken)
    covered = [positions.to_display(n) for n in range(spoken + 1)]
    assert covered == sorted(covered)
    assert spoken == 0 or covered[-1] == sum(map(len, texts))


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
