"""What the stages do at this moment, as `/health` shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import cast

from pipelines.ports import StageStats

DIGITS = 3  # of numbers that were measured


def show_load(stats: Sequence[StageStats]) -> Mapping[str, object]:
    """`{"load": {stage: {figure: number}}}`: what a stage does not know is left out."""
    return {"load": {entry.name: _known(asdict(entry)) for entry in stats}} if stats else {}


def _known(figures: Mapping[str, object]) -> dict[str, object]:
    known = dict[str, object]()
    for name, value in figures.items():
        if isinstance(value, dict):
            known[name] = _known(cast("dict[str, object]", value))
        elif value is not None and name != "name":
            known[name] = round(value, DIGITS) if isinstance(value, float) else value
    return known
