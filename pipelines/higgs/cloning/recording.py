"""Recordings of a voice as the codec hears them: mono, 24 kHz, of a length and loudness to use."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from pipelines.higgs.config import CODEC_RATE_HZ
from pipelines.types import Samples

# Prompts grow with the recording, 25 positions a second, and more than half a minute of a voice
# makes it no more like itself.
LONGEST_MS = 30_000
SHORTEST_MS = 300  # less holds no syllable, and a voice made of it is anybody's
# Of half a minute at 96 kHz in stereo float32, and its header.
LARGEST_BYTES = 24 * 2**20
QUIETEST_RMS = 1e-3  # -60 dB of full scale, below any microphone's speech
LOWEST_RATE_HZ, HIGHEST_RATE_HZ = 8_000, 192_000  # of recordings of speech


class ReferenceRefused(ValueError):
    """A reference cannot be used. `field` names the part of it; the message says why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


def read_recording(data: bytes, field: str) -> Samples:
    """A sound file of any usual format to float32 [n] at 24 kHz: its first channel.

    Raises ReferenceRefused, with that field.
    """
    if len(data) > LARGEST_BYTES:
        raise ReferenceRefused(
            field, f"{len(data)} bytes, where a recording may have {LARGEST_BYTES}"
        )
    samples, rate_hz = _decode(data, field)
    if not LOWEST_RATE_HZ <= rate_hz <= HIGHEST_RATE_HZ:
        raise ReferenceRefused(
            field, f"a rate of {rate_hz} Hz, not {LOWEST_RATE_HZ} to {HIGHEST_RATE_HZ}"
        )
    if len(samples) * 1000 > LONGEST_MS * rate_hz:
        raise _too_long(field)
    if not np.isfinite(samples).all():
        raise ReferenceRefused(field, "holds samples that are no numbers (NaN or infinite)")
    heard = np.asarray(soxr.resample(samples, rate_hz, CODEC_RATE_HZ), np.float32)
    if len(heard) * 1000 < SHORTEST_MS * CODEC_RATE_HZ:
        raise ReferenceRefused(
            field,
            f"{len(heard) * 1000 // CODEC_RATE_HZ} ms of sound; a voice needs {SHORTEST_MS} ms "
            "or more, and is at its best with 5 to 15 s",
        )
    if np.sqrt(np.mean(np.square(heard, dtype=np.float64))) < QUIETEST_RMS:
        raise ReferenceRefused(field, "silent; record it again, closer to the microphone")
    return heard


def _decode(data: bytes, field: str) -> tuple[Samples, int]:
    """soundfile reads most; PyAV the containers of phones and browsers (AAC, WebM)."""
    try:
        return _decode_by_soundfile(data, field)
    except soundfile.LibsndfileError:
        pass
    import av.error  # tens of megabytes that only these recordings need

    try:
        return _decode_by_av(data, field)
    except (av.error.FFmpegError, IndexError, ValueError) as error:
        if isinstance(error, ReferenceRefused):
            raise
        raise ReferenceRefused(field, f"not a sound file that can be read ({error})") from error


def _decode_by_soundfile(data: bytes, field: str) -> tuple[Samples, int]:
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        limit = file.samplerate * LONGEST_MS // 1000
        samples = file.read(limit + 1, dtype="float32", always_2d=True)
        if len(samples) > limit:
            raise _too_long(field)
        return np.ascontiguousarray(samples[:, 0], np.float32), file.samplerate


def _decode_by_av(data: bytes, field: str) -> tuple[Samples, int]:
    import av

    planar = av.AudioResampler(format="fltp")
    pieces: list[npt.NDArray[np.float32]] = []
    count, rate_hz = 0, CODEC_RATE_HZ
    with av.open(io.BytesIO(data), mode="r") as container:
        for decoded in container.decode(container.streams.audio[0]):
            rate_hz = decoded.sample_rate
            for frame in planar.resample(decoded):
                pieces.append(frame.to_ndarray()[0].astype(np.float32))
                count += len(pieces[-1])
            if count * 1000 > LONGEST_MS * rate_hz:
                raise _too_long(field)
    return (np.concatenate(pieces) if pieces else np.zeros(0, np.float32)), rate_hz


def _too_long(field: str) -> ReferenceRefused:
    return ReferenceRefused(field, f"longer than {LONGEST_MS // 1000} s; cut it to 5 to 15 s")
