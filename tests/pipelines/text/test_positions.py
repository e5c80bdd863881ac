from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.chunker import Utterance, WordSpan
from pipelines.text.narration import Narration
from pipelines.text.positions import Positions
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
