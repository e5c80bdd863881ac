"""The last few milliseconds of a reply that was cut."""

from __future__ import annotations

import numpy as np

from realtime.audio.quantise import FloatSamples


def fade_out(samples: FloatSamples) -> FloatSamples:
    """float32 [n] falling in a straight line to zero, so that a cut makes no click."""
    if len(samples) == 0:
        return samples
    slope = np.linspace(1.0, 0.0, num=len(samples), dtype=np.float32)
    return samples * slope
