"""Where one stream of audio follows another in the middle of a sound."""

from __future__ import annotations

import numpy as np

from realtime.audio.quantise import FloatSamples


class Seam:
    """Makes a stream begin at `before`, the last sample of the one in front of it.

    The difference falls off in a straight line over `length` samples, however they are cut.
    """

    def __init__(self, before: float, length: int) -> None:
        self._before = before
        self._length = length
        self._offset: float | None = None  # known once the stream has begun
        self._joined = 0

    @property
    def is_over(self) -> bool:
        return self._joined >= self._length

    def join(self, samples: FloatSamples) -> FloatSamples:
        """The next float32 [n] of the stream without the step; the array given stays as it is."""
        count = min(len(samples), self._length - self._joined)
        if count <= 0:
            return samples
        if self._offset is None:
            self._offset = self._before - float(samples[0])
        left = self._length - np.arange(self._joined, self._joined + count, dtype=np.float32)
        joined = samples.copy()
        joined[:count] += np.float32(self._offset / self._length) * left
        self._joined += count
        return joined
