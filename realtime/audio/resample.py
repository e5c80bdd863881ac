"""Changing the rate of a stream. Every stream owns its resampler: the state is never shared.

Hearing uses a short polyphase filter: block resamplers hold back up to 40 ms (from 24 kHz) or
115 ms (from 8 kHz), and that time would be added to every answer and to every interruption.
The voice arrives in long pieces, where a block resampler costs nothing and is faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import soxr

from realtime.audio.quantise import FloatSamples, IntSamples

_STOPBAND_DB = 70.0  # aliases lie below the noise of a 16-bit microphone
_TRANSITION = 0.1  # of the narrower Nyquist band: speech to 7.2 kHz passes, the filter stays short


_GROUP_SAMPLES = 32  # outputs per matrix product; fewer cost calls, more cost multiplications


@dataclass(frozen=True, slots=True)
class _Filter:
    """A period is `down` samples in and `up` samples out. One product makes `periods` of them."""

    up: int
    down: int
    half: int  # input samples that an output needs on either side
    periods: int
    matrix: FloatSamples  # float32 [down * periods + 2 * half, up * periods]


@lru_cache(maxsize=16)
def _design(from_hz: int, to_hz: int) -> _Filter:
    """A Kaiser-windowed sinc (Kaiser, 1974), laid out so that windows times matrix = outputs."""
    common = math.gcd(from_hz, to_hz)
    up, down = to_hz // common, from_hz // common
    band = min(1.0, up / down)  # the narrower Nyquist band, in units of the input's
    width_rad = math.pi * band * _TRANSITION
    half = math.ceil((_STOPBAND_DB - 8.0) / (2.285 * width_rad) / 2.0)
    beta = 0.1102 * (_STOPBAND_DB - 8.7)
    cutoff = band * (1.0 - _TRANSITION / 2.0)
    periods = max(1, _GROUP_SAMPLES // up)
    wanted_at = np.arange(up * periods, dtype=np.float64) * down / up
    given_at = np.arange(down * periods + 2 * half, dtype=np.float64) - half
    distance = wanted_at[None, :] - given_at[:, None]
    inside = np.clip(1.0 - (distance / half) ** 2, 0.0, None)
    window = np.where(inside > 0.0, np.i0(beta * np.sqrt(inside)) / np.i0(beta), 0.0)
    matrix = np.sinc(cutoff * distance) * window
    matrix /= matrix.sum(axis=0, keepdims=True)  # a constant passes unchanged
    return _Filter(up, down, half, periods, matrix.astype(np.float32))


class HearingResampler:
    """A streaming rational resampler whose delay is a few milliseconds.

    n samples in become ceil(n * to_hz / from_hz) samples out, however they were cut, once `flush`
    has been called; the output is aligned with the input. What lies before the first sample and
    after the last one is taken to be like them: silence would be a step, and ring.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self._same = from_hz == to_hz
        self._filter = _design(from_hz, to_hz)
        self._restart()

    def _restart(self) -> None:
        # What lies before the first sample; from then on what later outputs still need.
        self._held: FloatSamples = np.zeros(self._filter.half, dtype=np.float32)
        self._has_begun = False

    def wanted(self, outputs: int) -> int:
        """How many samples must still come in before at least `outputs` can come out."""
        if self._same:
            return outputs
        periods = -(-outputs // self._filter.up)
        return periods * self._filter.down + 2 * self._filter.half - len(self._held)

    def process(self, samples: FloatSamples) -> FloatSamples:
        """float32 [n] at the one rate to float32 [m] at the other."""
        if self._same:
            return samples
        if not self._has_begun and len(samples):
            self._has_begun = True
            self._held.fill(samples[0])
        held = np.concatenate([self._held, samples])
        ready = max(0, (len(held) - 2 * self._filter.half) // self._filter.down)
        out = self._convert(held, ready)
        self._held = held[ready * self._filter.down :].copy()
        return out

    def flush(self) -> FloatSamples:
        """What the filter still holds; the stream then begins anew."""
        if self._same:
            return np.zeros(0, dtype=np.float32)
        unheard = len(self._held) - self._filter.half
        wanted = -(-unheard * self._filter.up // self._filter.down)
        # The end turned about its last sample: neither a step nor a bend.
        beyond = 2 * self._held[-1] - self._held[-2 : -2 - self._filter.half : -1]
        held = np.concatenate([self._held, beyond])
        rest = self._convert(held, -(-unheard // self._filter.down))[:wanted]
        self._restart()
        return rest

    def _convert(self, held: FloatSamples, periods: int) -> FloatSamples:
        """The outputs of the first `periods` periods; beyond the end of `held` is silence."""
        if periods <= 0:
            return np.zeros(0, dtype=np.float32)
        shape = self._filter
        stride = shape.down * shape.periods
        groups = -(-periods // shape.periods)
        missing = (groups - 1) * stride + len(shape.matrix) - len(held)
        if missing > 0:
            held = np.concatenate([held, np.zeros(missing, dtype=np.float32)])
        # Overlapping rows over the same memory; numpy's own views of this kind cost more to make
        # than 20 ms of audio costs to convert.
        size_bytes = held.itemsize
        windows = np.ndarray(
            (groups, len(shape.matrix)), np.float32, held, strides=(stride * size_bytes, size_bytes)
        )
        return (windows @ shape.matrix).reshape(-1)[: periods * shape.up]


class VoiceResampler:
    """A streaming resampler of high quality for one reply (soxr, HQ).

    n samples in become n * to_hz / from_hz samples out, rounded, however they were cut.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self._stream: soxr.ResampleStream | None = None
        if from_hz != to_hz:
            self._stream = soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32", quality="HQ")

    def process(self, samples: FloatSamples) -> FloatSamples:
        return samples if self._stream is None else self._stream.resample_chunk(samples)

    def flush(self) -> FloatSamples:
        """The last samples of the reply; nothing may be processed after it."""
        nothing = np.zeros(0, dtype=np.float32)
        return nothing if self._stream is None else self._stream.resample_chunk(nothing, last=True)


def resample_whole(samples: IntSamples, from_hz: int, to_hz: int) -> IntSamples:
    """A finished recording, int16 [n], at another rate."""
    return samples if from_hz == to_hz else soxr.resample(samples, from_hz, to_hz)
