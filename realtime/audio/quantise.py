"""Float samples to 16-bit ones and back, for audio that is kept: half the memory, no harm heard."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatSamples: TypeAlias = npt.NDArray[np.float32]
IntSamples: TypeAlias = npt.NDArray[np.int16]

_FULL_SCALE = 32_768.0  # the magnitude of the most negative 16-bit sample
_LARGEST = 32_767.0


def to_int16(samples: FloatSamples) -> IntSamples:
    """float32 [n] in [-1, 1] to int16 [n]; what lies outside is clipped, never wrapped."""
    scaled = np.rint(samples * np.float32(_FULL_SCALE))
    return np.clip(scaled, -_FULL_SCALE, _LARGEST).astype(np.int16)


def to_float32(samples: IntSamples) -> FloatSamples:
    """int16 [n] to float32 [n] in [-1, 1)."""
    return samples.astype(np.float32) * np.float32(1.0 / _FULL_SCALE)
