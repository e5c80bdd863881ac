"""The state of a slot's speech, row by row."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pipelines.higgs.member import Repetition
from pipelines.higgs.rows import Row, RowBatch
from pipelines.higgs.v2.recent import RecentRows
from tests.pipelines.higgs.v2.judge import AUDIO, BEGIN_ROW, END_ROW

BEGIN, END = AUDIO.begin_code, AUDIO.end_code
SLOT = torch.tensor([1])


class Recent:
    """One slot of three."""

    def __init__(self, rule: Repetition | None = None) -> None:
        self._recent = RecentRows(3, AUDIO, rule, "cpu")
        self.feed(BEGIN_ROW)

    def feed(self, *rows: tuple[int, ...]) -> None:
        batch = RowBatch.of(
            [Row(1, number, codes=row) for number, row in enumerate(rows)], AUDIO.codebooks
        )
        self._recent.feed(batch, torch.from_numpy(batch.codes))

    def feed_text(self) -> None:
        batch = RowBatch.of([Row(1, 0, token=5)], AUDIO.codebooks)
        self._recent.feed(batch, torch.from_numpy(batch.codes))

    @property
    def forced(self) -> int:
        found = self._recent.forced(SLOT)[0].tolist()
        count = sum(found)
        assert found == [True] * count + [False] * (len(found) - count)
        return count

    def repeats(self, *codes: int) -> list[bool]:
        drawn: Tensor = torch.tensor([codes], dtype=torch.int32)
        return self._recent.repeats(SLOT, drawn)[0].tolist()


def row(**codebooks: int) -> tuple[int, ...]:
    """Codes that differ by codebook, with some replaced: c3=END."""
    return tuple(codebooks.get(f"c{number}", number) for number in range(AUDIO.codebooks))


@pytest.mark.parametrize("first", ["c0", "c3", "c7"])
def test_the_end_takes_one_codebook_more_in_each_row(first: str) -> None:
    recent = Recent()
    recent.feed(row())
    assert recent.forced == 0
    recent.feed(row(**{first: END}))
    for count in range(1, AUDIO.codebooks + 1):
        assert recent.forced == count
        recent.feed(tuple(END if number < count else 3 for number in range(AUDIO.codebooks)))
    assert recent.forced == AUDIO.codebooks


def test_text_changes_nothing_and_a_new_stretch_everything() -> None:
    recent = Recent(Repetition(7, 1))
    recent.feed(row(), row(c0=END))
    recent.feed_text()
    assert recent.forced == 1
    assert all(recent.repeats(*row()))
    recent.feed(END_ROW, BEGIN_ROW)
    assert recent.forced == 0
    assert not any(recent.repeats(*row()))


def test_the_limit_counts_within_the_window() -> None:
    recent = Recent(Repetition(3, 2))
    recent.feed(row(c0=9), row(c0=9), row(c0=8))
    assert recent.repeats(*row(c0=9)) == [True] * AUDIO.codebooks
    assert recent.repeats(*row(c0=8, c5=1)) == [
        number not in (0, 5) for number in range(AUDIO.codebooks)
    ]
    recent.feed(row(c0=8))  # the first 9 has left the window
    assert recent.repeats(*row(c0=9))[0] is False


def test_begin_and_end_codes_never_repeat() -> None:
    recent = Recent(Repetition(4, 1))
    recent.feed(row(c2=END, c3=BEGIN), row(c2=END, c3=BEGIN))
    repeats = recent.repeats(*row(c2=END, c3=BEGIN))
    assert repeats == [number not in (2, 3) for number in range(AUDIO.codebooks)]


def test_slots_do_not_share() -> None:
    state = RecentRows(3, AUDIO, Repetition(4, 1), "cpu")
    batch = RowBatch.of([Row(0, 0, codes=row(c0=END)), Row(2, 0, codes=row())], AUDIO.codebooks)
    state.feed(batch, torch.from_numpy(batch.codes))
    slots = torch.tensor([0, 1, 2])
    assert state.forced(slots).sum(dim=1).tolist() == [1, 0, 0]
    drawn = torch.tensor([row()] * 3, dtype=torch.int32)
    assert state.repeats(slots, drawn).sum(dim=1).tolist() == [7, 0, 8]
