"""Audio on the wire: which formats exist, and bytes to float32 samples and back.

Everything here is stateless: a frame stands alone. A byte that does not complete a sample is the
caller's to carry over to the next frame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from realtime.protocol import g711
from realtime.session.settings import AudioFormat

Samples = npt.NDArray[np.float32]

FULL_SCALE = 32_768  # the 16-bit level that stands for 1.0
# As scalars of the samples' own type: others would be converted for every frame.
_FULL_SCALE = np.float32(FULL_SCALE)
_LARGEST = np.float32(FULL_SCALE - 1)
_STEP = np.float32(1 / FULL_SCALE)


class Coding(Enum):
    PCM16 = "16-bit little-endian"
    MU_LAW = "G.711 mu-law"
    A_LAW = "G.711 A-law"


@dataclass(frozen=True, slots=True)
class WireFormat:
    """One `format.type` of the wire. The first rate is the one that an omitted `rate` means."""

    coding: Coding
    bytes_per_sample: int
    rates_hz: tuple[int, ...]
    shows_rate: bool  # whether the wire's object carries `rate`


WIRE_FORMATS: Mapping[str, WireFormat] = MappingProxyType(
    {
        "audio/pcm": WireFormat(Coding.PCM16, 2, rates_hz=(24_000,), shows_rate=True),
        "audio/pcmu": WireFormat(Coding.MU_LAW, 1, rates_hz=(8_000,), shows_rate=False),
        "audio/pcma": WireFormat(Coding.A_LAW, 1, rates_hz=(8_000,), shows_rate=False),
    }
)


def bytes_per_sample(audio_format: AudioFormat) -> int:
    return WIRE_FORMATS[audio_format.type].bytes_per_sample


def decode_audio(audio: bytes | bytearray | memoryview, audio_format: AudioFormat) -> Samples:
    """Wire bytes to float32 [n] in [-1, 1] at the format's rate.

    Raises ValueError if the bytes end inside a sample.
    """
    match WIRE_FORMATS[audio_format.type].coding:
        case Coding.PCM16:
            return np.frombuffer(audio, dtype="<i2").astype(np.float32) * _STEP
        case coding:
            return _level_samples(coding)[np.frombuffer(audio, dtype=np.uint8)]


def encode_audio(samples: Samples, audio_format: AudioFormat) -> bytes:
    """float32 [n] to wire bytes. What lies outside [-1, 1] is clipped; NaN becomes silence."""
    # A sum of squares finds what is not finite for a tenth of what replacing it costs.
    if not math.isfinite(np.dot(samples, samples)):
        samples = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0)
    levels = np.rint(samples * _FULL_SCALE)
    np.maximum(levels, -_FULL_SCALE, out=levels)
    np.minimum(levels, _LARGEST, out=levels)
    pcm = levels.astype("<i2")
    match WIRE_FORMATS[audio_format.type].coding:
        case Coding.PCM16:
            return pcm.tobytes()
        case coding:
            return _codes(coding)[pcm.astype(np.int16).view(np.uint16)].tobytes()


@cache
def _level_samples(coding: Coding) -> Samples:
    levels = g711.mu_law_levels() if coding is Coding.MU_LAW else g711.a_law_levels()
    return levels.astype(np.float32) / np.float32(FULL_SCALE)


@cache
def _codes(coding: Coding) -> g711.Codes:
    return g711.mu_law_codes() if coding is Coding.MU_LAW else g711.a_law_codes()
