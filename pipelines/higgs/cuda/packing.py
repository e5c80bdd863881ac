"""The rows of a step as one block of memory: one upload a step carries all that the kernels read.

A row is int32 [CODES + codebooks]; its columns are the constants below. Floats travel as bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.rows import LAST_DRAWN, NO_DRAW, NO_TOKEN, RowBatch

SLOT = 0
POSITION = 1
TOKEN = 2
RAMP = 3
SEED = 4
DRAW = 5
TEMPERATURE = 6
TOP_P = 7
TOP_K = 8
SETTLED = 9  # how many of the slot's positions were written by earlier steps
GROUP = 10  # how many rows from this one on attend together; 0: the row belongs to one before it
KEEPS = 11  # 1: the codes drawn here are the slot's last ones
CODES = 12

# Rows of a prompt that stand one after another share their reading of the cache; with the four
# queries to a key head of the published model, four rows fill the 16 rows of a matrix instruction.
GROUP_ROWS = 4

NO_POSITION = -1  # of rows that only fill up a step: they see nothing and write nothing


class PackingError(ValueError):
    """The rows are not ones that a step can take; the message names the first that is not."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What rows may name."""

    slots: int
    positions: int
    vocabulary_size: int
    codebooks: int
    codebook_size: int

    @classmethod
    def of(cls, config: HiggsConfig, slots: int, positions: int) -> Limits:
        return cls(
            slots=slots,
            positions=positions,
            vocabulary_size=config.backbone.vocabulary_size,
            codebooks=config.audio.codebooks,
            codebook_size=config.audio.codebook_size,
        )

    @property
    def width(self) -> int:
        """How many int32 a packed row has."""
        return CODES + self.codebooks


def pack(rows: RowBatch, into: npt.NDArray[np.int32], limits: Limits) -> None:
    """Write `rows`, and rows that only fill up, into int32 [bucket, limits.width].

    Raises PackingError: an index beyond its limit would have a kernel write beside its buffers.
    """
    _check(rows, limits)
    count = len(rows)
    columns = into[:count]
    columns[:, SLOT] = rows.slots
    columns[:, POSITION] = rows.positions
    columns[:, TOKEN] = rows.tokens
    columns[:, RAMP] = rows.ramps
    columns[:, SEED] = rows.seeds
    columns[:, DRAW] = rows.draws
    columns[:, TEMPERATURE] = rows.temperatures.view(np.int32)
    columns[:, TOP_P] = rows.top_p.view(np.int32)
    columns[:, TOP_K] = rows.top_k
    columns[:, CODES:] = rows.codes
    columns[:, SETTLED] = rows.positions
    columns[:, GROUP] = 1
    columns[:, KEEPS] = rows.ramps != NO_DRAW
    if len(set(rows.slots.tolist())) < count:
        _relate(columns)
    fill(into[count:])


def fill(rows: npt.NDArray[np.int32]) -> None:
    """Make them rows that only fill up a step: they touch no slot."""
    rows[:] = 0
    rows[:, POSITION] = NO_POSITION
    rows[:, RAMP] = NO_DRAW
    rows[:, GROUP] = 1


def _relate(columns: npt.NDArray[np.int32]) -> None:
    """Set what depends on other rows of the same slot."""
    slots = columns[:, SLOT].tolist()
    positions = columns[:, POSITION].tolist()
    first: dict[int, int] = {}
    keeper: dict[int, int] = {}
    leader = 0
    for number, slot in enumerate(slots):
        columns[number, SETTLED] = first.setdefault(slot, positions[number])
        if columns[number, KEEPS]:
            columns[keeper.get(slot, number), KEEPS] = 0
            columns[number, KEEPS] = 1
            keeper[slot] = number
        if number > leader and slot == slots[leader] and number - leader < GROUP_ROWS:
            columns[number, GROUP] = 0
            columns[leader, GROUP] += 1
        else:
            leader = number


def _check(rows: RowBatch, limits: Limits) -> None:
    faults = {
        f"its slot is not one of {limits.slots}": _outside(rows.slots, 0, limits.slots),
        f"its position is not one of {limits.positions}": _outside(
            rows.positions, 0, limits.positions
        ),
        f"its token is not one of {limits.vocabulary_size}": _outside(
            rows.tokens, NO_TOKEN, limits.vocabulary_size
        ),
        f"its codes are not all among {limits.codebook_size}": _outside(
            rows.codes, LAST_DRAWN, limits.codebook_size
        ).any(axis=1),
    }
    for fault, is_at_fault in faults.items():
        if is_at_fault.any():
            number = int(is_at_fault.argmax())
            where = f"slot {rows.slots[number]}, position {rows.positions[number]}"
            raise PackingError(f"row {number} ({where}): {fault}")


def _outside(values: npt.NDArray[np.int32], first: int, end: int) -> npt.NDArray[np.bool_]:
    return (values < first) | (values >= end)
