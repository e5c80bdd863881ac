"""Reads Prometheus' text format, version 0.0.4, as strictly as it is written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}

Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class Exposition:
    """kinds, helps: by family. samples: by name and sorted labels."""

    kinds: dict[str, str] = field(default_factory=dict)
    helps: dict[str, str] = field(default_factory=dict)
    samples: dict[Key, float] = field(default_factory=dict)
    family_of: dict[Key, str] = field(default_factory=dict)

    def value(self, name: str, **labels: str) -> float:
        return self.samples[name, tuple(sorted(labels.items()))]

    def growing(self) -> dict[Key, float]:
        """Everything that may never become less."""
        return {
            key: value
            for key, value in self.samples.items()
            if self.kinds[self.family_of[key]] in ("counter", "histogram")
        }

    def histograms(self) -> dict[Key, list[tuple[float, float]]]:
        """(bound, count) of each series of buckets, as they stand there."""
        series: dict[Key, list[tuple[float, float]]] = {}
        for (name, labels), value in self.samples.items():
            if self.kinds[self.family_of[name, labels]] == "histogram" and name.endswith("_bucket"):
                rest = tuple(pair for pair in labels if pair[0] != "le")
                bound = float(dict(labels)["le"].replace("Inf", "inf"))
                series.setdefault((name.removesuffix("_bucket"), rest), []).append((bound, value))
        return series


def parse(text: str) -> Exposition:
    """Raises AssertionError with the line that breaks a rule of the format."""
    assert text.endswith("\n"), "the last line must end"
    read, family = Exposition(), ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family, _, told = line.removeprefix("# HELP ").partition(" ")
            assert re.fullmatch(NAME, family) and told, line
            assert family not in read.helps, f"a family stands there twice: {line}"
            read.helps[family] = told
        elif line.startswith("# TYPE "):
            name, _, kind = line.removeprefix("# TYPE ").partition(" ")
            assert name == family and kind in SUFFIXES and name not in read.kinds, line
            read.kinds[name] = kind
        else:
            _read_sample(read, family, line)
    return read


def _read_sample(read: Exposition, family: str, line: str) -> None:
    found = SAMPLE.fullmatch(line)
    assert found is not None, line
    name, inside, number = found.groups()
    assert family in read.kinds, f"no TYPE before: {line}"
    assert name in {family + suffix for suffix in SUFFIXES[read.kinds[family]]}, line
    labels, at = list[tuple[str, str]](), 0
    while inside and at < len(inside):
        label = LABEL.match(inside, at)
        assert label is not None, line
        labels.append((label[1], re.sub(r"\\(.)", _unescaped, label[2])))
        at = label.end()
    assert len(dict(labels)) == len(labels), line
    key = (name, tuple(sorted(labels)))
    assert key not in read.samples, f"a sample stands there twice: {line}"
    value = float(number.replace("Inf", "inf"))
    assert not math.isnan(value), line
    read.samples[key], read.family_of[key] = value, family


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]
