"""Float samples to 16-bit ones and back, for audio that is kept: half the memory, no harm heard."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatSamples: TypeAlias = npt.NDArray[np.float32]
IntSamples: TypeAlias = npt.NDArray[np.int16]

_FULL_SCALE = np.float32(32_768.0)  # the magnitude of the most negative 16-bit sample
_LARGEST = np.float32(32_767.0)
_STEP = np.float32(1.0 / 32_768.0)


def to_int16(samples: FloatSamples) -> IntSamples:
    """float32 [n] in [-1, 1] to int16 [n]; what lies outside is clipped, never wrapped."""
    scaled = np.rint(samples * _FULL_SCALE)
    np.maximum(scaled, -_FULL_SCALE, out=scaled)
    np.minimum(scaled, _LARGEST, out=scaled)
    return scaled.astype(np.int16)


def to_float32(samples: IntSamples) -> FloatSamples:
    """int16 [n] to float32 [n] in [-1, 1)."""
    return samples.astype(np.float32) * _STEP
