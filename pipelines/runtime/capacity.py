"""How much sound a stage makes, and how much more it could: measured from its own steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipelines.ports import Capacity

WINDOW_S = 30.0  # of rates: longer than a sentence and its pause, short enough to follow a crowd
MEMORY_S = 30.0  # of work, after which a span's weight in the fit has fallen to a third
ENOUGH_S = 2.0  # of work, before anything is said about capacity: the first steps are not typical
ENOUGH_AUDIO_S = 1.0  # the same, of what the work has made
SPAN_S = 0.5  # of work: what one point of the fit stands for, so that prompts among the steps
# of few streams are not taken for the cost of few streams
# A step that lasts longer than both is none of the model's: the machine stood still, or something
# was compiled. It counts as the longer of them.
SPIKE_S = 2.0
SPIKE_STEPS = 10.0  # of the mean
LEAST_VARIANCE = 0.1  # in streams squared: below, all batches were alike and tell no slope


class Rate:
    """Amounts per second, of the last `WINDOW_S` or so: older ones count ever less."""

    def __init__(self, now_s: float) -> None:
        self._since_s = now_s
        self._at_s = now_s
        self._sum = 0.0

    def add(self, amount: float, now_s: float) -> None:
        self._sum = self._decayed(now_s) + amount
        self._at_s = max(self._at_s, now_s)

    def per_second(self, now_s: float) -> float:
        # Of a short life only so much was ever seen.
        seen_s = WINDOW_S * -math.expm1(-max(0.0, now_s - self._since_s) / WINDOW_S)
        return self._decayed(now_s) / max(seen_s, 1.0)

    def _decayed(self, now_s: float) -> float:
        return self._sum * math.exp(-max(0.0, now_s - self._at_s) / WINDOW_S)


class Listening:
    """How much of a stream's sound has been heard, if it is played from when its first came.

    What is made ahead of its hearing is not heard yet, and never will be after an abort: a voice
    that is much faster than real time has one listener all the same.
    """

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._made_s = 0.0
        self._told_s = 0.0

    def make(self, seconds: float, now_s: float) -> None:
        """So much more sound has been made."""
        if seconds > 0 and self._since_s is None:
            self._since_s = now_s
        self._made_s += seconds

    def news_s(self, now_s: float, *, is_over: bool = False) -> float:
        """What was heard since the last call. is_over: all is made, and it will be heard."""
        if self._since_s is None:
            return 0.0
        heard_s = self._made_s if is_over else min(self._made_s, now_s - self._since_s)
        news_s = max(0.0, heard_s - self._told_s)
        self._told_s += news_s
        return news_s


class CapacityMeter:
    """Fed with every step; pure but for what it was fed. Not for several threads at once.

    A step of n streams lasts `base + slope * n` seconds (least squares over the latest spans of
    steps) and makes q seconds of audio per stream on average. A batch is in real time while a step
    lasts no longer than the audio that it makes for each: n <= (q - base) / slope. Where the
    batches seen were all of one size there is no slope: if that size was in real time, the slots
    are the limit; if not, what it made is.
    """

    def __init__(self, slots: int, now_s: float) -> None:
        self.slots = slots
        self.steps = Rate(now_s)
        self.audio = Rate(now_s)
        self.heard = Rate(now_s)
        self._span = _Sums()
        # Decayed sums over spans, each weighted with its steps.
        self._all = _Sums()
        self._nn = self._nd = 0.0

    def record(
        self, streams: int, audio_s: float, heard_s: float, lasted_s: float, now_s: float
    ) -> None:
        """A step of so many streams has ended: how much audio it made, how much of all that was
        made has been heard since the last one, and how long it lasted."""
        self.steps.add(1.0, now_s)
        self.audio.add(audio_s, now_s)
        self.heard.add(heard_s, now_s)
        mean_s = self._all.lasted_s / self._all.steps if self._all.steps else 0.0
        self._span.add(1.0, streams, min(lasted_s, max(SPIKE_S, SPIKE_STEPS * mean_s)), audio_s)
        if self._span.lasted_s >= SPAN_S:
            self._close_span()

    def _close_span(self) -> None:
        span, self._span = self._span, _Sums()
        keep = math.exp(-span.lasted_s / MEMORY_S)
        self._all.fade(keep)
        self._all.add(span.steps, span.streams, span.lasted_s, span.audio_s)
        self._nn = self._nn * keep + span.streams * span.streams / span.steps
        self._nd = self._nd * keep + span.streams * span.lasted_s / span.steps

    def capacity(self, now_s: float) -> Capacity | None:
        """None until enough was seen. An idle time takes nothing of what was learnt."""
        if self._all.lasted_s < ENOUGH_S or self._all.audio_s < ENOUGH_AUDIO_S:
            return None
        made_s = self._all.audio_s / self._all.streams
        base_s, slope_s = self._fit()
        full_s = base_s + slope_s * self.slots
        return Capacity(
            streams=min(float(self.slots), self._in_real_time(made_s, base_s, slope_s)),
            delivers=self.heard.per_second(now_s),
            could_deliver=self.slots * made_s / full_s,
        )

    def _in_real_time(self, made_s: float, base_s: float, slope_s: float) -> float:
        """How many streams a batch may have whose step lasts no longer than what it makes."""
        if slope_s <= 0:
            return math.inf if base_s <= made_s else made_s / base_s
        # Of less than one stream: what share of real time it gets alone.
        alone = made_s / (base_s + slope_s)
        return max((made_s - base_s) / slope_s, min(alone, 1.0))

    def _fit(self) -> tuple[float, float]:
        """(base, slope) of the duration of a step over its streams, neither below zero."""
        steps = self._all.steps
        mean_n, mean_d = self._all.streams / steps, self._all.lasted_s / steps
        variance = self._nn / steps - mean_n * mean_n
        if variance < LEAST_VARIANCE:
            is_timely = mean_d <= self._all.audio_s / self._all.streams
            return (mean_d, 0.0) if is_timely else (0.0, mean_d / mean_n)
        slope_s = (self._nd / steps - mean_n * mean_d) / variance
        slope_s = min(max(slope_s, 0.0), mean_d / mean_n)
        return mean_d - slope_s * mean_n, slope_s


@dataclass(slots=True)
class _Sums:
    """Of steps: how many, their streams, how long they lasted, what they made."""

    steps: float = 0.0
    streams: float = 0.0
    lasted_s: float = 0.0
    audio_s: float = 0.0

    def add(self, steps: float, streams: float, lasted_s: float, audio_s: float) -> None:
        self.steps += steps
        self.streams += streams
        self.lasted_s += lasted_s
        self.audio_s += audio_s

    def fade(self, keep: float) -> None:
        self.steps *= keep
        self.streams *= keep
        self.lasted_s *= keep
        self.audio_s *= keep
