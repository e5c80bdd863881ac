"""Counters and histograms of one server, kept in memory. Imports nothing of the server."""

from __future__ import annotations

import bisect
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

log = logging.getLogger("parley.turn")

# Roughly a third apart: fine enough for a percentile that somebody looks at.
_BOUNDS_MS = (
    *(1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 400, 500, 650, 800, 1000),
    *(1200, 1500, 2000, 3000, 5000, 7000, 10_000, 20_000, 30_000, 60_000),
)  # fmt: skip
# Label values that one count may have: what clients or remote servers can choose stays bounded.
MOST_LABELS = 100
OTHER = "other"  # stands for all above that
# What people wait for, as spans between two stations of a response.
_SPANS = (
    ("speech_end_to_first_audio_ms", "speech_end", "first_sent"),
    ("turn_end_to_first_audio_ms", "turn_end", "first_sent"),
    ("response_first_audio_ms", "created", "first_sent"),
    ("voice_first_audio_ms", "voiced", "first_audio"),
)


class Count(StrEnum):
    SESSIONS_OPENED = "sessions_opened"
    SESSIONS_CLOSED = "sessions_closed"
    SESSIONS_CRASHED = "sessions_crashed"
    SESSIONS_REFUSED = "sessions_refused"
    SESSIONS_PARKED = "sessions_parked"
    SESSIONS_RESUMED = "sessions_resumed"
    CLIENTS_STALLED = "clients_stalled"
    TURNS = "turns"
    TURNS_DRAFTED = "turns_drafted"
    WORK_ABORTED = "work_aborted"
    WORK_FAILED = "work_failed"
    STALE_OUTPUTS_DROPPED = "stale_outputs_dropped"
    STALE_FRAMES_DROPPED = "stale_frames_dropped"
    RECORDS_CUT_SHORT = "records_cut_short"
    RESPONSES = "responses"  # by status
    SPEECH_STARTED = "speech_started"
    SPEECH_STOPPED = "speech_stopped"
    TURNS_COMMITTED = "turns_committed"
    TURNS_TIMED_OUT = "turns_timed_out"
    SPEECH_REQUESTS = "speech_requests"  # by outcome
    RECOGNITIONS = "recognitions"  # by outcome
    AUDIO_SPOKEN_US = "audio_spoken_us"  # microseconds of sound, by what it was made for
    AUDIO_RECOGNISED_US = "audio_recognised_us"
    HTTP_REQUESTS = "http_requests"  # by method, route and status
    HTTP_REFUSALS = "http_refusals"  # by the code in the answer
    RECEIVED_BYTES = "received_bytes"  # by kind of connection
    SENT_BYTES = "sent_bytes"


class Histogram:
    """Counts by fixed bounds in ms. A percentile is the upper bound of the bucket it falls in."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS_MS) + 1)
        self.count = 0
        self.total_ms = 0.0
        self.largest_ms = 0.0

    def observe(self, value_ms: float) -> None:
        self._counts[bisect.bisect_left(_BOUNDS_MS, value_ms)] += 1
        self.count += 1
        self.total_ms += value_ms
        self.largest_ms = max(self.largest_ms, value_ms)

    def percentile_ms(self, percent: float) -> float | None:
        """None while nothing was observed."""
        if not self.count:
            return None
        wanted, seen = self.count * percent / 100.0, 0
        for bound_ms, count in zip(_BOUNDS_MS, self._counts, strict=False):
            seen += count
            if seen >= wanted:
                return min(float(bound_ms), self.largest_ms)
        return self.largest_ms

    def buckets(self) -> list[tuple[float, int]]:
        """(upper bound in ms, how many values at or below it), cumulated; the last is infinite."""
        total, rows = 0, list[tuple[float, int]]()
        for bound_ms, count in zip((*_BOUNDS_MS, float("inf")), self._counts, strict=True):
            total += count
            rows.append((float(bound_ms), total))
        return rows


@dataclass(slots=True)
class Metrics:
    """One object per server; sessions write, `/metrics` and the log read.

    labelled: the counts that are told apart, by the values of their labels.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    labelled: dict[str, Counter[tuple[str, ...]]] = field(
        default_factory=dict[str, Counter[tuple[str, ...]]]
    )
    histograms: dict[str, Histogram] = field(default_factory=dict[str, Histogram])

    def add(self, what: Count, by: int = 1, labels: tuple[str, ...] = ()) -> None:
        """labels: the same number of values at each call for the same count."""
        self.counts[what] += by
        if labels:
            told = self.labelled.get(what)
            if told is None:
                told = self.labelled[what] = Counter()
            if labels not in told and len(told) >= MOST_LABELS:
                labels = (OTHER,) * len(labels)
            told[labels] += by

    def observe(self, name: str, value_ms: float) -> None:
        histogram = self.histograms.get(name)
        if histogram is None:
            histogram = self.histograms[name] = Histogram()
        histogram.observe(value_ms)

    def turn(
        self,
        *,
        label: str,
        status: str,
        drafted: bool,
        stamps_ms: Sequence[tuple[str, float]],
        response_id: str,
    ) -> None:
        """One finished response: every station, measured from the first; one line in the log."""
        self.add(Count.TURNS)
        self.add(Count.RESPONSES, labels=(status,))
        at_ms_of = dict(stamps_ms)
        for span, begin, end in _SPANS:
            if begin in at_ms_of and end in at_ms_of:
                self.observe(span, max(0.0, at_ms_of[end] - at_ms_of[begin]))
        if drafted:
            self.add(Count.TURNS_DRAFTED)
        start_ms = stamps_ms[0][1] if stamps_ms else 0.0
        steps = list[str]()
        for name, at_ms in stamps_ms:
            steps.append(f"{name} {at_ms - start_ms:.0f}")
            if at_ms > start_ms:
                self.observe(f"turn_{name}_ms", at_ms - start_ms)
        log.info(
            "%s %s %s%s: %s ms",
            label,
            response_id,
            status,
            ", drafted" if drafted else "",
            ", ".join(steps) or "no stations",
        )

    def snapshot(self) -> Mapping[str, float]:
        """Every counter, and count, median, p95 and maximum of every histogram."""
        values: dict[str, float] = {str(name): float(n) for name, n in self.counts.items()}
        for name, histogram in self.histograms.items():
            values[f"{name}_count"] = float(histogram.count)
            values[f"{name}_p50"] = histogram.percentile_ms(50) or 0.0
            values[f"{name}_p95"] = histogram.percentile_ms(95) or 0.0
            values[f"{name}_max"] = histogram.largest_ms
        return values
