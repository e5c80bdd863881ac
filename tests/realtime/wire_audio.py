"""Audio as a client makes and reads it, in every format, and a tone under the microscope."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np

from pipelines.types import Samples
from realtime.audio.quantise import to_float32
from realtime.protocol.formats import decode_audio, encode_audio
from realtime.protocol.opus import OpusDecoder
from realtime.protocol.opus_library import load_opuslib
from realtime.session.settings import AudioFormat

ROWS = tuple(
    AudioFormat(kind, rate_hz)
    for kind, rates_hz in (
        ("audio/pcm", (8_000, 16_000, 24_000, 48_000)),
        ("audio/pcmu", (8_000,)),
        ("audio/pcma", (8_000,)),
    )
    for rate_hz in rates_hz
)
OPUS = tuple(
    AudioFormat("audio/opus", rate_hz) for rate_hz in (8_000, 12_000, 16_000, 24_000, 48_000)
)
EVERY_FORMAT = ROWS + OPUS
TONE_HZ = 440.0
AMPLITUDE = 0.3


def name_of(audio_format: AudioFormat) -> str:
    return f"{audio_format.type.removeprefix('audio/')}-{audio_format.rate_hz}"


def view_of(audio_format: AudioFormat) -> dict[str, Any]:
    """The format as a client writes it and as the server shows it."""
    view: dict[str, Any] = {"type": audio_format.type}
    if audio_format.type in ("audio/pcm", "audio/opus"):
        view["rate"] = audio_format.rate_hz
    return view


def sine(duration_ms: float, rate_hz: int, start_ms: float = 0.0) -> Samples:
    """A piece of the tone that began at 0 ms."""
    at = np.arange(round(rate_hz * duration_ms / 1000)) / rate_hz + start_ms / 1000
    return (AMPLITUDE * np.sin(2 * np.pi * TONE_HZ * at)).astype(np.float32)


def appends(
    samples: Samples, audio_format: AudioFormat, sizes: Sequence[int] = (961,)
) -> Iterator[bytes]:
    """What a client appends: pieces of so many bytes, over and over, or packets of 20 ms."""
    if audio_format.type == "audio/opus":
        yield from packets(samples, audio_format.rate_hz)
        return
    audio, at = encode_audio(samples, audio_format), 0
    for size in cycle(sizes):
        if at >= len(audio):
            return
        yield audio[at : at + size]
        at += size


def packets(
    samples: Samples,
    rate_hz: int,
    frame_ms: float = 20,
    channels: int = 1,
    application: str = "audio",
    bitrate: int = 48_000,
) -> Iterator[bytes]:
    """Opus by the book: what does not fill the last frame is left out."""
    encoder = load_opuslib().Encoder(rate_hz, channels, application)
    encoder.bitrate = bitrate * channels
    frame = round(rate_hz * frame_ms / 1000)
    levels = np.rint(np.repeat(samples, channels) * 32_767).astype("<i2")
    for at in range(0, len(samples) - frame + 1, frame):
        piece = levels[at * channels : (at + frame) * channels]
        yield encoder.encode(piece.tobytes(), frame)


def decode_deltas(deltas: Sequence[bytes], audio_format: AudioFormat) -> Samples:
    """The audio of deltas at the format's rate, by one decoder from the first to the last."""
    if audio_format.type != "audio/opus":
        return decode_audio(b"".join(deltas), audio_format)
    decoder = OpusDecoder(audio_format.rate_hz)
    pieces = [to_float32(decoder.decode(packet)) for packet in deltas]
    return np.concatenate([*pieces, np.zeros(0, np.float32)])


def frequency_hz(samples: Samples, rate_hz: int) -> float:
    """The loudest one: the peak of the spectrum, between its bins."""
    spectrum = np.log(np.abs(np.fft.rfft(samples * np.hanning(len(samples)))) + 1e-9)
    peak = int(np.argmax(spectrum))
    left, middle, right = spectrum[peak - 1 : peak + 2]
    offset = 0.5 * (left - right) / (left - 2 * middle + right)
    return (peak + offset) * rate_hz / len(samples)


def level_db(samples: Samples) -> float:
    """Against the tone as it was made."""
    return 20 * math.log10(math.sqrt(2 * float(np.mean(samples**2))) / AMPLITUDE)


def roughness(samples: Samples, rate_hz: int) -> float:
    """The largest step from a sample to the next, against the largest one in the tone itself."""
    largest = 2 * AMPLITUDE * math.sin(math.pi * TONE_HZ / rate_hz)
    return float(np.abs(np.diff(samples)).max()) / largest


def assert_is_the_tone(samples: Samples, rate_hz: int, roughest: float = 1.3) -> None:
    """Its pitch, its level, and no click; its ends may be those of a codec."""
    edge = rate_hz * 20 // 1000
    middle = samples[edge:-edge]
    assert abs(frequency_hz(middle, rate_hz) - TONE_HZ) < 1.0
    assert abs(level_db(middle)) < 1.0
    assert roughness(samples, rate_hz) < roughest


def odd_sizes(seed: int) -> list[int]:
    """Sizes that no format's samples or frames divide."""
    drawn = np.random.default_rng(seed).integers(0, 900, size=50)
    return list(islice((int(size) * 2 + 1 for size in drawn), 50))
