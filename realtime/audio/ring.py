"""The last seconds that a session heard, addressed by audio time."""

from __future__ import annotations

import numpy as np

from realtime.audio.quantise import FloatSamples, IntSamples, to_int16


class Ring:
    """16-bit samples at the hearing rate. `position` counts all samples ever written.

    A read names absolute positions; what has been overwritten or not been heard yet is left out.
    """

    def __init__(self, capacity_samples: int) -> None:
        if capacity_samples <= 0:
            raise ValueError(f"a ring needs room for samples, not {capacity_samples}")
        self._store: IntSamples = np.zeros(capacity_samples, dtype=np.int16)
        self.position = 0

    def forget(self) -> None:
        """Free the samples; the position stays. Whatever is written later is as good as unheard."""
        self._store = np.zeros(1, dtype=np.int16)

    @property
    def oldest(self) -> int:
        """The first position that can still be read."""
        return max(0, self.position - len(self._store))

    def write(self, samples: FloatSamples) -> IntSamples:
        """Append float32 [n]; returns the same samples as they are kept, int16 [n]."""
        kept = to_int16(samples)
        capacity = len(self._store)
        tail = kept[-capacity:]
        start = (self.position + len(kept) - len(tail)) % capacity
        first = min(len(tail), capacity - start)
        self._store[start : start + first] = tail[:first]
        self._store[: len(tail) - first] = tail[first:]
        self.position += len(kept)
        return kept

    def read(self, start: int, end: int) -> IntSamples:
        """A copy of [start, end) as far as it is held, int16."""
        start = max(start, self.oldest)
        end = min(end, self.position)
        if start >= end:
            return np.zeros(0, dtype=np.int16)
        capacity = len(self._store)
        at = start % capacity
        first = self._store[at : at + end - start]
        rest = self._store[: end - start - len(first)]
        return np.concatenate([first, rest])
