"""Uploaded recordings as they are kept: mono, 24 kHz, 16 bits, a WAV file of 1 to 30 s."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import soundfile
import soxr
from av.audio.resampler import AudioResampler
from av.error import FFmpegError

from realtime.audio.reading import UnreadableAudio, open_audio
from realtime.audio.truncation import is_cut_wave
from realtime.voices.names import VoiceRefused

FIELD = "audio_sample"
SHORTEST_S = 1  # less is nobody's voice in particular
LONGEST_S = 30  # more makes no voice more like itself
LARGEST_BYTES = 24 * 2**20  # half a minute at 96 kHz in stereo float32, and its header
KEPT_RATE_HZ = 24_000  # what voices that copy are made for
QUIETEST_RMS = 1e-3  # -60 dB of full scale, below any microphone's speech
HIGHEST_PEAK = 8.0  # of full scale 1: far beyond any float recording that clips
MOST_CHANNELS = 8  # of surround sound
LOWEST_RATE_HZ, HIGHEST_RATE_HZ = 8_000, 192_000  # of recordings of speech

Samples: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recording:
    """wav: the bytes of a whole file."""

    wav: bytes
    duration_ms: int


def read_recording(data: bytes) -> Recording:
    """A sound file of any usual format, as it is kept: its first channel that is not silent.

    Blocking. Raises VoiceRefused (`voice_sample_refused`).
    """
    if len(data) > LARGEST_BYTES:
        raise _refused(f"the file is larger than {LARGEST_BYTES // 2**20} MiB")
    channels, rate_hz = _decode(data)
    length_s = channels.shape[1] / rate_hz
    if length_s < SHORTEST_S:
        raise _refused(f"it lasts {length_s:.2f} s; expected {SHORTEST_S} to {LONGEST_S} s")
    if not np.isfinite(channels).all():
        raise _refused("it holds samples that are no numbers (NaN or infinite)")
    heard = _heard_channel(channels)
    peak = float(np.abs(heard).max())
    if peak > HIGHEST_PEAK:
        raise _refused(f"it holds samples of up to {peak:.3g}, where the loudest sound has 1")
    kept = np.asarray(soxr.resample(heard, rate_hz, KEPT_RATE_HZ), np.float32)
    kept = kept / max(1.0, float(np.abs(kept).max()))  # 16 bits would clip what floats hold
    file = io.BytesIO()
    soundfile.write(file, kept, KEPT_RATE_HZ, format="WAV", subtype="PCM_16")
    return Recording(file.getvalue(), len(kept) * 1000 // KEPT_RATE_HZ)


def _decode(data: bytes) -> tuple[Samples, int]:
    """[channels, n] and a rate in Hz. soundfile reads most, PyAV whatever else there is."""
    if not data:
        raise _refused("it is empty")
    if is_cut_wave(io.BytesIO(data)):
        raise _refused(
            "it is truncated: its header tells of more audio than there is; send it whole"
        )
    try:
        return _decode_by_soundfile(data)
    except soundfile.LibsndfileError:
        pass
    try:
        return _decode_by_av(data)
    except UnreadableAudio as error:
        said = str(error).rstrip(".")
        raise _refused(f"{said[:1].lower()}{said[1:]}") from error
    except VoiceRefused:
        raise
    except (FFmpegError, ValueError) as error:  # the latter of frames that do not fit together
        raise _refused("it is damaged") from error


def _decode_by_soundfile(data: bytes) -> tuple[Samples, int]:
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        _check_shape(file.samplerate, file.channels)
        limit = file.samplerate * LONGEST_S
        samples = file.read(limit + 1, dtype="float32", always_2d=True)
        if len(samples) > limit:
            raise _too_long()
        return np.ascontiguousarray(samples.T, np.float32), file.samplerate


def _decode_by_av(data: bytes) -> tuple[Samples, int]:
    planar = AudioResampler(format="fltp")
    pieces: list[Samples] = []
    count, rate_hz, channels = 0, 0, 0
    container, stream = open_audio(io.BytesIO(data))
    with container:
        for decoded in container.decode(stream):
            shape = decoded.sample_rate, decoded.layout.nb_channels
            if pieces and shape != (rate_hz, channels):
                raise _refused("its rate or its channels change on the way; save it anew")
            rate_hz, channels = shape
            _check_shape(rate_hz, channels)
            for frame in planar.resample(decoded):
                pieces.append(frame.to_ndarray().astype(np.float32))
                count += pieces[-1].shape[1]
            if count > LONGEST_S * rate_hz:
                raise _too_long()
    if not pieces:
        raise _refused("no sound in it could be decoded: it is empty or damaged")
    return np.concatenate(pieces, axis=1), rate_hz


def _check_shape(rate_hz: int, channels: int) -> None:
    """Before memory is taken for 30 s: a small file may claim very much."""
    if not LOWEST_RATE_HZ <= rate_hz <= HIGHEST_RATE_HZ:
        raise _refused(f"its rate is {rate_hz} Hz, not {LOWEST_RATE_HZ} to {HIGHEST_RATE_HZ}")
    if channels > MOST_CHANNELS:
        raise _refused(f"it has {channels} channels; one or two are enough")


def _heard_channel(channels: Samples) -> Samples:
    """[channels, n] to [n]: one microphone of two may have been off."""
    for channel in channels:
        if float(np.sqrt(np.mean(np.square(channel, dtype=np.float64)))) >= QUIETEST_RMS:
            return np.ascontiguousarray(channel)
    raise _refused("it is silent; record it again, closer to the microphone")


def _too_long() -> VoiceRefused:
    return _refused(f"it is longer than {LONGEST_S} s; cut it to 5 to 15 s")


def _refused(why: str) -> VoiceRefused:
    return VoiceRefused(
        FIELD, "voice_sample_refused", f"Invalid '{FIELD}': the recording cannot be used: {why}."
    )
