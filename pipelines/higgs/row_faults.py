"""What no step may be asked: every decoder refuses the same rows, in the same words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.rows import LAST_DRAWN, NO_DRAW, NO_TOKEN, RowBatch

Flags = npt.NDArray[np.bool_]  # [R]


class StepError(ValueError):
    """A step that cannot be run; nothing of it was. The message names the row and its fault."""


@dataclass(frozen=True, slots=True)
class RowLimits:
    """What rows may name."""

    slots: int
    positions: int
    vocabulary_size: int
    codebooks: int
    codebook_size: int

    @classmethod
    def of(cls, config: HiggsConfig, slots: int, positions: int) -> RowLimits:
        return cls(
            slots=slots,
            positions=positions,
            vocabulary_size=config.backbone.vocabulary_size,
            codebooks=config.audio.codebooks,
            codebook_size=config.audio.codebook_size,
        )


def check(rows: RowBatch, limits: RowLimits) -> None:
    """Raises StepError: an index beyond its limit would be read or written beside a buffer, and
    rows out of order would see what is not written yet."""
    is_drawn = rows.codes == LAST_DRAWN
    faults = {
        f"its slot is not one of {limits.slots}": _outside(rows.slots, 0, limits.slots),
        f"its position is not one of {limits.positions}": _outside(
            rows.positions, 0, limits.positions
        ),
        f"its token is not one of {limits.vocabulary_size}": _outside(
            rows.tokens, NO_TOKEN, limits.vocabulary_size
        ),
        f"its codes are not all among {limits.codebook_size}": (
            _outside(rows.codes, LAST_DRAWN, limits.codebook_size).any(axis=1)
            | (is_drawn.any(axis=1) & ~is_drawn.all(axis=1))
        ),
    }
    if len(set(rows.slots.tolist())) < len(rows):
        faults |= {
            "its slot has a row of this step at this position or beyond": _is_out_of_order(rows),
            "its codes are drawn in this same step": _follows_a_draw(rows),
        }
    for fault, is_at_fault in faults.items():
        if is_at_fault.any():
            number = int(is_at_fault.argmax())
            slot, position = rows.slots[number], rows.positions[number]
            raise StepError(f"row {number} (slot {slot}, position {position}): {fault}")


def _outside(values: npt.NDArray[np.int32], first: int, end: int) -> Flags:
    return (values < first) | (values >= end)


def _is_out_of_order(rows: RowBatch) -> Flags:
    highest: dict[int, int] = {}
    faults = np.zeros(len(rows), np.bool_)
    places = zip(rows.slots.tolist(), rows.positions.tolist(), strict=True)
    for number, (slot, position) in enumerate(places):
        faults[number] = position <= highest.get(slot, -1)
        highest[slot] = position
    return faults


def _follows_a_draw(rows: RowBatch) -> Flags:
    is_drawn_code = (rows.tokens == NO_TOKEN) & (rows.codes == LAST_DRAWN).all(axis=1)
    faults = np.zeros(len(rows), np.bool_)
    drawing: set[int] = set()
    draws = (rows.ramps != NO_DRAW).tolist()
    for number, slot in enumerate(rows.slots.tolist()):
        faults[number] = is_drawn_code[number] and slot in drawing
        if draws[number]:
            drawing.add(slot)
    return faults
