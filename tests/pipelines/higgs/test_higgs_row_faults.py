"""A row that would read or write beside the buffers, or see what is not there, is refused."""

from __future__ import annotations

import pytest

from pipelines.higgs.row_faults import RowLimits, StepError, check
from pipelines.higgs.rows import Row, RowBatch

LIMITS = RowLimits(slots=4, positions=50, vocabulary_size=100, codebooks=8, codebook_size=34)
DRAWING = Row(0, 3, token=1, ramp=0)


def checked(*rows: Row) -> None:
    check(RowBatch.of(list(rows), LIMITS.codebooks), LIMITS)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (Row(4, 0, token=1), "slot is not one of 4"),
        (Row(-1, 0, token=1), "slot is not one of 4"),
        (Row(1, 50, token=1), "position is not one of 50"),
        (Row(1, -1, token=1), "position is not one of 50"),
        (Row(1, 0, token=100), "token is not one of 100"),
        (Row(1, 0, codes=(0, 0, 0, 34, 0, 0, 0, 0)), "codes are not all among 34"),
        (Row(1, 0, codes=(0, 0, 0, -1, 0, 0, 0, 0)), "codes are not all among 34"),
        (Row(0, 3, token=1), "at this position or beyond"),
        (Row(0, 2, token=1), "at this position or beyond"),
        (Row(0, 4), "drawn in this same step"),
    ],
)
def test_a_fault_is_named_with_its_row(row: Row, fault: str) -> None:
    with pytest.raises(StepError, match=rf"row 1 \(slot {row.slot}, .*{fault}"):
        checked(DRAWING, row)


def test_rows_of_several_slots_may_stand_in_any_order() -> None:
    checked(Row(2, 40, token=1), Row(0, 3), Row(2, 41, token=1, ramp=0), Row(1, 0, token=99))
