"""How the kernels split their work, by the number of rows of the step.

The figures are in choices.json, measured on an H200 by `python -m benchmarks.higgs.tuning`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("choices.json")


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
    their way to each at once (products) or to each warp (attention)."""

    splits: int
    stages: int


Choices = Mapping[Work, Choice]

MAX_SPLITS = 8  # a portable cluster


def choices(rows: int) -> Choices:
    """Those measured for the fewest rows that are not fewer than `rows`, or for the most."""
    table = _table()
    return table[min((most for most in table if most >= rows), default=max(table))]


@cache
def _table() -> Mapping[int, Choices]:
    content = json.loads(TABLE.read_text(encoding="utf-8"))
    return {
        int(rows): {Work[name]: Choice(*figures) for name, figures in of_rows.items()}
        for rows, of_rows in content.items()
    }
