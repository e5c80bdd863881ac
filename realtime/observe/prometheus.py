"""Prometheus' text format, version 0.0.4: what it asks of names, labels, numbers and histograms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]  # (name, value), in the order in which they are written


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(slots=True)
class Family:
    """All samples of one metric. Two with the same labels are one: the later holds.

    name: with its unit; a counter's ends in `_total`. values: by labels.
    """

    name: str
    kind: Kind
    help: str
    values: dict[tuple[str, Labels], float] = field(default_factory=dict[tuple[str, Labels], float])

    def put(self, value: float, labels: Mapping[str, str] | None = None, suffix: str = "") -> None:
        """suffix: of a histogram's samples."""
        self.values[suffix, tuple((labels or {}).items())] = value

    def put_histogram(
        self,
        buckets: Iterable[tuple[float, int]],
        total: float,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """buckets: (upper bound, how many values at or below it); the last bound is infinite.

        total: the sum of all values.
        """
        count = 0
        for bound, count in buckets:
            self.put(count, {**(labels or {}), "le": _number(bound)}, "_bucket")
        self.put(total, labels, "_sum")
        self.put(count, labels, "_count")


def render(families: Iterable[Family]) -> str:
    """The exposition of families, each with its HELP and TYPE."""
    lines = list[str]()
    for family in families:
        lines.append(f"# HELP {family.name} {_escaped(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for (suffix, labels), value in family.values.items():
            lines.append(f"{family.name}{suffix}{_shown(labels)} {_number(value)}")
    return "\n".join(lines) + "\n" if lines else ""


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_quoted(value)}"' for name, value in labels)
    return "{" + ",".join(pairs) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) else repr(value)
