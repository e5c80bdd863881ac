"""Sound files as tests upload them."""

from __future__ import annotations

import io

import av
import numpy as np

from pipelines.types import HEARING_RATE_HZ, Samples

KINDS = {  # container: codec, rate
    "wav": ("pcm_s16le", 16_000),
    "mp3": ("libmp3lame", 44_100),
    "mp4": ("aac", 48_000),
    "ogg": ("libopus", 48_000),
    "webm": ("libopus", 48_000),
    "flac": ("flac", 48_000),
    "adts": ("aac", 44_100),
    "matroska": ("libopus", 48_000),
    "aiff": ("pcm_s16be", 22_050),
    "ac3": ("ac3", 48_000),
    "flv": ("aac", 44_100),
}


def hum(seconds: float, level: float = 0.1) -> Samples:
    at = np.arange(int(seconds * HEARING_RATE_HZ)) / HEARING_RATE_HZ
    return (level * np.sin(2 * np.pi * 200 * at)).astype(np.float32)


def encoded(audio: Samples, kind: str = "wav") -> bytes:
    """Audio at `HEARING_RATE_HZ` in a container of `KINDS`."""
    made = io.BytesIO()
    encode_into(made, audio, kind)
    return made.getvalue()


def encode_into(
    file: str | io.BytesIO, audio: Samples, kind: str, options: dict[str, str] | None = None
) -> None:
    """options: of FFmpeg's muxer."""
    codec, rate_hz = KINDS[kind]
    with av.open(file, "w", format=kind, options=options or {}) as container:
        stream = container.add_stream(codec, rate=rate_hz)
        assert isinstance(stream, av.AudioStream)
        stream.layout = "mono"
        resampler = av.AudioResampler(stream.format.name, "mono", rate_hz)
        frame = av.AudioFrame.from_ndarray(audio[None], format="flt", layout="mono")
        frame.sample_rate = HEARING_RATE_HZ
        for part in (frame, None):
            for resampled in resampler.resample(part):
                container.mux(stream.encode(resampled))
        container.mux(stream.encode(None))
