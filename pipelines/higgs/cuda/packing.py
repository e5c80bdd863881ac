"""The rows of a step as one block of memory: one upload a step carries all that the kernels read.

A row is int32 [CODES + codebooks]; its columns are the constants below. Floats travel as bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipelines.higgs.rows import NO_DRAW, RowBatch

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


def width(codebooks: int) -> int:
    """How many int32 a packed row has."""
    return CODES + codebooks


def pack(rows: RowBatch, into: npt.NDArray[np.int32]) -> None:
    """Write checked `rows`, and rows that only fill up, into int32 [bucket, width]."""
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
