"""What one step of the decoder is asked: rows, each one position of one slot.

A row is a text token or a row of codes, at its position in its slot's sequence; it sees what stands
before it there, rows of the same step included. So prompts and running streams share a step,
and a long prompt may be split anywhere: only the rows that say so draw codes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]  # [rows or frames, codebooks]

NO_TOKEN = -1  # the row is of codes
LAST_DRAWN = -1  # the row's codes are those that its slot drew last
NO_DRAW = -1  # the row only extends the cache


@dataclass(frozen=True, slots=True)
class Sampling:
    """How codes are drawn. Greedy if temperature <= 1e-5 or top_k is 1; top_k < 1: no limit."""

    temperature: float = 0.8
    top_p: float = 0.8
    top_k: int = 30


@dataclass(frozen=True, slots=True)
class Row:
    """One position of one slot.

    token: a text token, or NO_TOKEN.
    codes: the row's codes where it is no token; None: those that the slot drew last.
    ramp: NO_DRAW, or the number of the row that is drawn from this one's hidden state within its
        chunk: codebooks beyond it become BOC.
    seed, draw: the noise is a function of both, the codebook and the code.
    """

    slot: int
    position: int
    token: int = NO_TOKEN
    codes: tuple[int, ...] | None = None
    ramp: int = NO_DRAW
    seed: int = 0
    draw: int = 0
    sampling: Sampling = Sampling()


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Rows as arrays of one length [R].

    slots, positions, tokens, ramps, seeds, draws, top_k: int32; codes: int32 [R, codebooks], all
    LAST_DRAWN where the slot's last codes are meant; temperatures, top_p: float32.
    """

    slots: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int32]
    tokens: npt.NDArray[np.int32]
    codes: Codes
    ramps: npt.NDArray[np.int32]
    seeds: npt.NDArray[np.int32]
    draws: npt.NDArray[np.int32]
    temperatures: npt.NDArray[np.float32]
    top_p: npt.NDArray[np.float32]
    top_k: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.slots)

    @classmethod
    def of(cls, rows: list[Row], codebooks: int) -> RowBatch:
        drawn = (LAST_DRAWN,) * codebooks
        codes = [drawn if row.codes is None else row.codes for row in rows]
        return cls(
            slots=np.array([row.slot for row in rows], np.int32),
            positions=np.array([row.position for row in rows], np.int32),
            tokens=np.array([row.token for row in rows], np.int32),
            codes=np.array(codes, np.int32).reshape(len(rows), codebooks),
            ramps=np.array([row.ramp for row in rows], np.int32),
            seeds=np.array([row.seed for row in rows], np.int32),
            draws=np.array([row.draw for row in rows], np.int32),
            temperatures=np.array([row.sampling.temperature for row in rows], np.float32),
            top_p=np.array([row.sampling.top_p for row in rows], np.float32),
            top_k=np.array([row.sampling.top_k for row in rows], np.int32),
        )
