"""Recordings of a voice as the codec hears them: mono, 24 kHz, of a length and loudness to use."""

from __future__ import annotations

import io
import math
from pathlib import Path

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
LARGEST_MIB = 24
LARGEST_BYTES = LARGEST_MIB * 2**20
QUIETEST_RMS = 1e-3  # -60 dB of full scale, below any microphone's speech
HIGHEST_PEAK = 8.0  # of full scale 1: far beyond any float recording that clips
# What a file refers to, as playlists do, is not opened.
DECODER_OPTIONS = {"protocol_whitelist": "none"}
LOWEST_RATE_HZ, HIGHEST_RATE_HZ = 8_000, 192_000  # of recordings of speech


class ReferenceRefused(ValueError):
    """A reference cannot be used. `field` names the part of it; `message` says why and what to do.

    Of a file, the message begins with its absolute path.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def read_recording_file(path: Path, field: str) -> Samples:
    """As `read_recording`, of a file. Raises ReferenceRefused, with that field."""
    named = path.absolute()
    try:
        if path.is_dir():
            raise ReferenceRefused(field, f"{named} is a folder: name the sound file in it")
        if (size_bytes := path.stat().st_size) > LARGEST_BYTES:
            raise _too_large(f"{named}: ", field, size_bytes)
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ReferenceRefused(field, f"there is no file {named}: correct the path") from error
    except OSError as error:
        raise ReferenceRefused(
            field, f"{named} cannot be read: {error.strerror}; correct the path or its rights"
        ) from error
    try:
        return read_recording(data, field)
    except ReferenceRefused as refused:
        raise ReferenceRefused(field, f"{named}: {refused.message}") from refused


def read_recording(data: bytes, field: str) -> Samples:
    """A sound file of any usual format to float32 [n] at 24 kHz: its first channel
    that is not silent.

    Raises ReferenceRefused, with that field.
    """
    if len(data) > LARGEST_BYTES:
        raise _too_large("", field, len(data))
    samples, rate_hz = _decode(data, field)
    if not LOWEST_RATE_HZ <= rate_hz <= HIGHEST_RATE_HZ:
        raise ReferenceRefused(
            field,
            f"a rate of {rate_hz} Hz, not {LOWEST_RATE_HZ} to {HIGHEST_RATE_HZ}; save it with "
            f"{CODEC_RATE_HZ} Hz",
        )
    if len(samples) * 1000 > LONGEST_MS * rate_hz:
        raise _too_long(field)
    if not np.isfinite(samples).all():
        raise ReferenceRefused(
            field, "holds samples that are no numbers (NaN or infinite); save it as 16-bit WAV"
        )
    if len(samples) and np.abs(samples).max() > HIGHEST_PEAK:
        raise ReferenceRefused(
            field,
            f"samples of up to {np.abs(samples).max():.3g}, where the loudest sound has 1; save it "
            "as 16-bit WAV",
        )
    heard = np.asarray(soxr.resample(samples, rate_hz, CODEC_RATE_HZ), np.float32)
    if len(heard) * 1000 < SHORTEST_MS * CODEC_RATE_HZ:
        raise ReferenceRefused(
            field,
            f"{len(heard) * 1000 // CODEC_RATE_HZ} ms of sound; a voice needs {SHORTEST_MS} ms "
            "or more, and is at its best with 5 to 15 s",
        )
    if _rms(heard) < QUIETEST_RMS:
        raise ReferenceRefused(field, "silent; record it again, closer to the microphone")
    return heard


def _decode(data: bytes, field: str) -> tuple[Samples, int]:
    """soundfile reads most; PyAV whatever else there is, such as what phones make (AAC, WebM)."""
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
        why = "it is empty" if not data else getattr(error, "strerror", None) or str(error)
        raise ReferenceRefused(
            field, f"not a sound file that can be read ({why}); save it as WAV or FLAC"
        ) from error


def _decode_by_soundfile(data: bytes, field: str) -> tuple[Samples, int]:
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        limit = file.samplerate * LONGEST_MS // 1000
        samples = file.read(limit + 1, dtype="float32", always_2d=True)
        if len(samples) > limit:
            raise _too_long(field)
        return _heard_channel(np.asarray(samples.T, np.float32)), file.samplerate


def _decode_by_av(data: bytes, field: str) -> tuple[Samples, int]:
    import av

    planar = av.AudioResampler(format="fltp")
    pieces: list[npt.NDArray[np.float32]] = []
    count, rate_hz = 0, CODEC_RATE_HZ
    with av.open(io.BytesIO(data), mode="r", options=DECODER_OPTIONS) as container:
        for decoded in container.decode(container.streams.audio[0]):
            if pieces and decoded.sample_rate != rate_hz:
                raise ReferenceRefused(field, "its rate changes on the way; save it anew")
            rate_hz = decoded.sample_rate
            for frame in planar.resample(decoded):
                pieces.append(frame.to_ndarray().astype(np.float32))
                count += pieces[-1].shape[1]
            if count * 1000 > LONGEST_MS * rate_hz:
                raise _too_long(field)
    whole = np.concatenate(pieces, axis=1) if pieces else np.zeros((1, 0), np.float32)
    return _heard_channel(whole), rate_hz


def _heard_channel(channels: npt.NDArray[np.float32]) -> Samples:
    """[channels, n] to [n]: one microphone of two may have been off."""
    for channel in channels:
        if len(channel) and _rms(channel) >= QUIETEST_RMS:
            return np.ascontiguousarray(channel)
    return np.ascontiguousarray(channels[0])


def _rms(samples: Samples) -> float:
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))


def _too_large(prefix: str, field: str, size_bytes: int) -> ReferenceRefused:
    """Rounded up, so that it is never what is allowed."""
    size_mib = math.ceil(size_bytes / 2**20 * 10) / 10
    return ReferenceRefused(
        field,
        f"{prefix}{size_mib:.1f} MiB, where {LARGEST_MIB} MiB are allowed; cut it to 5 to 15 s",
    )


def _too_long(field: str) -> ReferenceRefused:
    return ReferenceRefused(field, f"longer than {LONGEST_MS // 1000} s; cut it to 5 to 15 s")
