"""Audio on the wire: which formats exist, and bytes to float32 samples and back.

What is converted here is stateless: a frame stands alone. A byte that does not complete a sample is
the caller's to carry over to the next frame. `audio/opus` is a stream of packets instead, whose
state `opus.py` keeps.
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

from realtime.protocol import g711, opus
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
    OPUS = "one Opus packet per event"


@dataclass(frozen=True, slots=True)
class WireFormat:
    """One `format.type` of the wire. The first rate is the one that an omitted `rate` means.

    bytes_per_sample: None for packets, whose bytes stand for no certain number of samples.
    """

    coding: Coding
    bytes_per_sample: int | None
    rates_hz: tuple[int, ...]
    shows_rate: bool  # whether the wire's object carries `rate`


WIRE_FORMATS: Mapping[str, WireFormat] = MappingProxyType(
    {
        "audio/pcm": WireFormat(
            Coding.PCM16, 2, rates_hz=(24_000, 8_000, 16_000, 48_000), shows_rate=True
        ),
        "audio/pcmu": WireFormat(Coding.MU_LAW, 1, rates_hz=(8_000,), shows_rate=False),
        "audio/pcma": WireFormat(Coding.A_LAW, 1, rates_hz=(8_000,), shows_rate=False),
        "audio/opus": WireFormat(Coding.OPUS, None, rates_hz=opus.RATES_HZ, shows_rate=True),
    }
)


def is_packets(audio_format: AudioFormat) -> bool:
    """Whether each event holds one packet of a coded stream, not any piece of a row of samples."""
    return WIRE_FORMATS[audio_format.type].coding is Coding.OPUS


def is_telephone(audio_format: AudioFormat) -> bool:
    return WIRE_FORMATS[audio_format.type].coding in (Coding.MU_LAW, Coding.A_LAW)


def recording_format(audio_format: AudioFormat) -> AudioFormat:
    """How whole recordings stand in items: as the stream does, unless that is one of packets.

    Packets cannot be told apart once they are joined, so their sessions have audio/pcm at 24 kHz
    there: in what `conversation.item.retrieved` shows and in what `conversation.item.create` gives.
    """
    return AudioFormat() if is_packets(audio_format) else audio_format


def bytes_per_sample(audio_format: AudioFormat) -> int:
    """Raises ValueError for packets."""
    size_bytes = WIRE_FORMATS[audio_format.type].bytes_per_sample
    if size_bytes is None:
        raise _no_samples(audio_format)
    return size_bytes


def decode_audio(audio: bytes | bytearray | memoryview, audio_format: AudioFormat) -> Samples:
    """Wire bytes to float32 [n] in [-1, 1] at the format's rate.

    Raises ValueError if the bytes end inside a sample, and for packets.
    """
    match WIRE_FORMATS[audio_format.type].coding:
        case Coding.PCM16:
            return np.frombuffer(audio, dtype="<i2").astype(np.float32) * _STEP
        case Coding.OPUS:
            raise _no_samples(audio_format)
        case coding:
            return _level_samples(coding)[np.frombuffer(audio, dtype=np.uint8)]


def encode_audio(samples: Samples, audio_format: AudioFormat) -> bytes:
    """float32 [n] to wire bytes. What lies outside [-1, 1] is clipped; NaN becomes silence.

    Raises ValueError for packets.
    """
    pcm = pcm_levels(samples)
    match WIRE_FORMATS[audio_format.type].coding:
        case Coding.PCM16:
            return pcm.tobytes()
        case Coding.OPUS:
            raise _no_samples(audio_format)
        case coding:
            return _codes(coding)[pcm.astype(np.int16).view(np.uint16)].tobytes()


def pcm_levels(samples: Samples) -> npt.NDArray[np.int16]:
    """float32 [n] to the little-endian 16-bit levels of the wire, clipped; NaN is silence."""
    # A sum of squares finds what is not finite for a tenth of what replacing it costs.
    if not math.isfinite(np.dot(samples, samples)):
        samples = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0)
    levels = np.rint(samples * _FULL_SCALE)
    np.maximum(levels, -_FULL_SCALE, out=levels)
    np.minimum(levels, _LARGEST, out=levels)
    return levels.astype("<i2")


def _no_samples(audio_format: AudioFormat) -> ValueError:
    return ValueError(f"{audio_format.type} is a stream of packets, not a row of samples")


@cache
def _level_samples(coding: Coding) -> Samples:
    levels = g711.mu_law_levels() if coding is Coding.MU_LAW else g711.a_law_levels()
    return levels.astype(np.float32) / np.float32(FULL_SCALE)


@cache
def _codes(coding: Coding) -> g711.Codes:
    return g711.mu_law_codes() if coding is Coding.MU_LAW else g711.a_law_codes()
