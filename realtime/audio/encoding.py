"""Speech as the bytes of a sound file, written while it is still being spoken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np

from realtime.audio.quantise import FloatSamples, to_int16
from realtime.audio.resample import VoiceResampler
from realtime.audio.wav import wav_header

_PCM_RATE_HZ = 24_000  # bytes without a header have one rate that every client knows


@dataclass(frozen=True, slots=True)
class FormatInfo:
    """A format that speech is sent in: its name in a request, its media type, its file's ending."""

    name: str
    media_type: str
    suffix: str


SPEECH_FORMATS: Mapping[str, FormatInfo] = MappingProxyType(
    {
        info.name: info
        for info in (
            FormatInfo("wav", "audio/wav", ".wav"),
            FormatInfo("pcm", "audio/pcm", ".pcm"),
            FormatInfo("mp3", "audio/mpeg", ".mp3"),
            FormatInfo("opus", "audio/ogg", ".ogg"),
            FormatInfo("aac", "audio/aac", ".aac"),
            FormatInfo("flac", "audio/flac", ".flac"),
        )
    }
)


class _Writer(Protocol):
    """Clean samples at the format's own rate in, bytes out."""

    def write(self, samples: FloatSamples) -> bytes: ...

    def finish(self) -> bytes: ...


class SpeechEncoder:
    """One stream of mono speech in one format: any number of `encode`, then one `finish`.

    Joined, the bytes are one file, however the samples were cut. Whatever lies beyond full scale
    is clipped and what is no number is silence. wav and flac keep the voice's rate, pcm has 24 kHz,
    mp3, opus and aac have 48 kHz (`rate_hz` tells which). Decoded, wav, pcm, flac and opus last as
    long as the samples, mp3 and aac less than one frame of 24 and 21 ms longer; the sound begins
    where it began. The shortest lossy file has one to three frames.

    is_streamed: the bytes leave as they come, and a header that wants the length says that it is
        unknown (of wav, unless `total_samples`, at the voice's rate, tells it). Otherwise every
        length in the file is exact, and most bytes leave with `finish`.

    The work is blocking, about a hundredth of the audio's duration: on an event loop make it
    and call each method through `asyncio.to_thread`, one after the other, in order. An encoder
    that is no longer wanted may just be dropped.

    Raises ValueError: unknown format, a rate that is not positive; from `finish` if there were
    not `total_samples` in all.
    """

    def __init__(
        self, format: str, rate_hz: int, *, is_streamed: bool, total_samples: int | None = None
    ) -> None:
        if format not in SPEECH_FORMATS:
            raise ValueError(f"no speech format {format!r}; there are {', '.join(SPEECH_FORMATS)}")
        if rate_hz <= 0:
            raise ValueError(f"a voice cannot have a rate of {rate_hz} Hz")
        self._total_samples = total_samples
        self._seen_samples = 0
        self.rate_hz = _rate_of(format, rate_hz)
        self._resampler = VoiceResampler(rate_hz, self.rate_hz)
        self._writer = _open_writer(format, self.rate_hz, is_streamed, total_samples)

    def encode(self, samples: FloatSamples) -> bytes:
        """float32 [n] at the voice's rate to the bytes that are ready, often none."""
        self._seen_samples += len(samples)
        if len(samples) == 0:
            return b""
        return self._writer.write(_clean(self._resampler.process(_clean(samples))))

    def finish(self) -> bytes:
        """The last bytes; nothing may be encoded after it."""
        if self._total_samples not in (None, self._seen_samples):
            raise ValueError(
                f"{self._total_samples} samples were announced, {self._seen_samples} came"
            )
        rest = self._writer.write(_clean(self._resampler.flush())) if self._seen_samples else b""
        return rest + self._writer.finish()


def _clean(samples: FloatSamples) -> FloatSamples:
    """float32 [n] within full scale; before resampling so that one spike cannot ring for long, and
    after it because a filter overshoots."""
    bounded = np.clip(samples, -1.0, 1.0)
    return np.nan_to_num(bounded, copy=False, nan=0.0)


def _rate_of(format: str, voice_hz: int) -> int:
    match format:
        case "pcm":
            return _PCM_RATE_HZ
        case "wav":
            return voice_hz
        case _:
            from realtime.audio.codecs import encoded_rate_hz

            return encoded_rate_hz(format, voice_hz)


def _open_writer(
    format: str, rate_hz: int, is_streamed: bool, total_samples: int | None
) -> _Writer:
    match format:
        case "pcm":
            return _PcmWriter()
        case "wav":
            return _WavWriter(rate_hz, is_streamed, total_samples)
        case _:
            from realtime.audio.codecs import CodecWriter

            return CodecWriter(format, rate_hz, is_streamed)


class _PcmWriter:
    """16-bit little-endian samples and nothing else."""

    def write(self, samples: FloatSamples) -> bytes:
        return to_int16(samples).astype("<i2", copy=False).tobytes()

    def finish(self) -> bytes:
        return b""


class _WavWriter:
    """16-bit PCM behind a RIFF header, which is late where it must be exact and cannot yet be."""

    def __init__(self, rate_hz: int, is_streamed: bool, total_samples: int | None) -> None:
        self._pcm = _PcmWriter()
        self._rate_hz = rate_hz
        self._gathered: list[bytes] | None = None
        self._header = b""
        if is_streamed or total_samples is not None:
            self._header = wav_header(rate_hz, total_samples)
        else:
            self._gathered = []

    def write(self, samples: FloatSamples) -> bytes:
        data = self._pcm.write(samples)
        if self._gathered is not None:
            self._gathered.append(data)
            return b""
        header, self._header = self._header, b""
        return header + data

    def finish(self) -> bytes:
        if self._gathered is None:
            return self._header  # of a file without samples
        data = b"".join(self._gathered)
        return wav_header(self._rate_hz, len(data) // 2) + data
