"""The edges of a reply that is cut or held."""

from __future__ import annotations

import numpy as np

from realtime.audio.quantise import FloatSamples


def fade_out(samples: FloatSamples) -> FloatSamples:
    """float32 [n] falling in a straight line to zero, so that a cut makes no click."""
    if len(samples) == 0:
        return samples
    slope = np.linspace(1.0, 0.0, num=len(samples), dtype=np.float32)
    return samples * slope


def fade_in(samples: FloatSamples, count: int) -> FloatSamples:
    """float32 [n] whose first `count` samples rise from zero in a straight line."""
    count = min(count, len(samples))
    slope = np.linspace(0.0, 1.0, num=count, dtype=np.float32)
    return np.concatenate([samples[:count] * slope, samples[count:]])
