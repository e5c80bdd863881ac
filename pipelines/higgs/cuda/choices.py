"""How the kernels split their work, by the number of rows of the step.

Measured on an H200 by `python -m benchmarks.higgs.tuning`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
    """`product::Kind`: what becomes of a product."""

    HEADS = 0
    ADD = 1
    GATE = 2
    LOGITS = 3


class Work(IntEnum):
    """The kernels of a step: its products, and attention."""

    QKV = 0
    ATTENTION = 1
    OUT = 2
    GATE_UP = 3
    DOWN = 4
    HEAD = 5


@dataclass(frozen=True, slots=True)
class Choice:
    """splits: how many blocks share a piece of work, a cluster; stages: how many tiles are on
    their way to each at once (products) or to each warp (attention); members: 2 where two blocks
    with weight rows of their own share what they read of the inputs, in the same cluster."""

    splits: int
    stages: int
    members: int = 1


Choices = Mapping[Work, Choice]

MAX_SPLITS = 8  # a portable cluster

_FEW = {
    Work.QKV: Choice(4, 6),
    Work.ATTENTION: Choice(8, 2),
    Work.OUT: Choice(8, 6),
    Work.GATE_UP: Choice(2, 4),
    Work.DOWN: Choice(4, 6),
    Work.HEAD: Choice(4, 3),
}
_SOME = {
    Work.QKV: Choice(4, 4),
    Work.ATTENTION: Choice(2, 2),
    Work.OUT: Choice(8, 4),
    Work.GATE_UP: Choice(1, 4),
    Work.DOWN: Choice(8, 4),
    Work.HEAD: Choice(4, 3),
}

# The last number of rows that a set of choices is for.
_BY_ROWS: tuple[tuple[int, Choices], ...] = (
    (8, _FEW),
    (32, _SOME),
)
_MANY: Choices = {
    Work.QKV: Choice(4, 4, 2),
    Work.ATTENTION: Choice(1, 3),
    Work.OUT: Choice(4, 4, 2),
    Work.GATE_UP: Choice(2, 3, 2),
    Work.DOWN: Choice(4, 6, 2),
    Work.HEAD: Choice(2, 3),
}


def choices(rows: int) -> Choices:
    return next((made for last, made in _BY_ROWS if rows <= last), _MANY)
