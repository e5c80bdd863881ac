"""Sound files of any kind, decoded piece by piece to what recognisers hear.

FFmpeg (through PyAV) decodes; memory holds about a second of audio however long the file is. A
file is read as it is: nothing that it names, such as an entry of a playlist, is opened.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

import av
import numpy as np
from av.audio.resampler import AudioResampler
from av.container import InputContainer
from av.error import FFmpegError

from realtime.audio.quantise import FloatSamples
from realtime.audio.segments import RATE_HZ
from realtime.audio.truncation import declared_s, is_cut_wave

PIECE_SAMPLES = RATE_HZ  # 1 s: few calls for an hour, and little to hold
LONGEST_S = 4 * 3600.0
LOWEST_RATE_HZ = 4_000  # below, no speech can be made out, and little data grows to much audio
HIGHEST_RATE_HZ = 768_000
MOST_CHANNELS = (
    8  # of those that no layout names, such as that of 5.1: nobody knows how to mix more
)
MISSING_S = 0.5  # what a whole file may lack of the length that it tells: encoders' margins
MISSING_SHARE = 0.05
OPTIONS = {"protocol_whitelist": "none"}  # what a file refers to is not opened


class UnreadableAudio(ValueError):
    """A file that is not heard; the message says why, for whoever sent it."""


class SoundFile:
    """Blocking. One thread at a time iterates it; any may stop it.

    file: stays open. Raises UnreadableAudio, as iterating does.
    """

    def __init__(self, file: BinaryIO, longest_s: float = LONGEST_S) -> None:
        self.seconds = 0.0  # decoded so far
        self._longest_s = longest_s
        self._stopped = threading.Event()
        if is_cut_wave(file):
            raise UnreadableAudio(
                "It is truncated: its header tells of more audio than there is. Send it whole."
            )
        self._container, self._stream = open_audio(file)
        try:
            self._declared_s = declared_s(file, self._container, self._stream)
            self._refuse_longer(self._declared_s or 0.0)
        except BaseException:
            self._container.close()
            raise

    def stop(self) -> None:
        """Have the iteration end soon, whoever runs it."""
        self._stopped.set()

    def __iter__(self) -> Iterator[FloatSamples]:
        """float32 at `RATE_HZ`, in pieces of about `PIECE_SAMPLES`. Closes what it read."""
        try:
            gathered: list[FloatSamples] = []
            count = 0
            for samples in self._resampled():
                gathered.append(samples)
                count += len(samples)
                if count >= PIECE_SAMPLES:
                    yield np.concatenate(gathered)
                    gathered, count = [], 0
            if gathered:
                yield np.concatenate(gathered)
            if not self._stopped.is_set():
                self._refuse_incomplete()
        except FFmpegError as error:
            raise UnreadableAudio(f"It is damaged ({_reason(error)}).") from error
        finally:
            self._container.close()

    def _resampled(self) -> Iterator[FloatSamples]:
        resampler: AudioResampler | None = None
        kind: object = None
        for frame in self._frames():
            found = (frame.format.name, frame.layout.name, frame.sample_rate)
            if resampler is None or found != kind:  # some streams change on the way
                yield from _heard(resampler.resample(None) if resampler else ())
                _refuse_unmixable(frame.layout)
                resampler = AudioResampler(format="flt", layout="mono", rate=RATE_HZ)
                kind = found
            frame.pts = None  # gaps and jumps in a file's clock are no audio
            for samples in _heard(resampler.resample(frame)):
                self.seconds += len(samples) / RATE_HZ
                self._refuse_longer(self.seconds)
                yield samples
        for samples in _heard(resampler.resample(None) if resampler else ()):
            self.seconds += len(samples) / RATE_HZ
            yield samples

    def _frames(self) -> Iterator[Any]:
        packets = self._container.demux(self._stream)
        while not self._stopped.is_set():
            try:
                packet = next(packets)
            except StopIteration:
                return
            except FFmpegError:  # the file ends here, or cannot be followed any further
                return
            try:
                frames = packet.decode()
            except FFmpegError:  # damaged; what follows it may be whole
                continue
            yield from frames

    def _refuse_longer(self, seconds: float) -> None:
        if seconds > self._longest_s:
            raise UnreadableAudio(
                f"It is longer than {self._longest_s:g} s, the most that is heard of one file. "
                "Send it in parts."
            )

    def _refuse_incomplete(self) -> None:
        if not self.seconds:
            raise UnreadableAudio("No audio in it could be decoded: it is empty or damaged.")
        told_s = self._declared_s or 0.0
        if told_s - self.seconds > max(MISSING_S, MISSING_SHARE * told_s):
            raise UnreadableAudio(
                f"It is truncated or damaged: it tells of {told_s:.1f} s of audio, and "
                f"{self.seconds:.1f} s could be decoded. Send it whole."
            )


def open_audio(file: BinaryIO) -> tuple[InputContainer, Any]:
    """A container of any kind, for whoever closes it, and its first stream of audio.

    Blocking. Raises UnreadableAudio.
    """
    try:
        # Titles and the like are not looked at: they may have any encoding.
        container = av.open(file, "r", options=OPTIONS, metadata_errors="replace")
    except FFmpegError as error:
        raise UnreadableAudio(
            "It cannot be read as audio: it is of no known format, or truncated "
            f"({_reason(error)})."
        ) from error
    except ValueError as error:
        # What the library itself says of what it found is for programmers.
        raise UnreadableAudio("It is damaged: its head cannot be read.") from error
    try:
        return container, _audio_stream(container)
    except BaseException:
        container.close()
        raise


def _audio_stream(container: InputContainer) -> Any:
    streams = container.streams.audio
    if not streams:
        raise UnreadableAudio("There is no audio in it.")
    if streams[0].codec_context is None:
        raise UnreadableAudio("Its audio has an encoding that is not known, or is damaged.")
    rate_hz = streams[0].rate or 0
    if not LOWEST_RATE_HZ <= rate_hz <= HIGHEST_RATE_HZ:
        raise UnreadableAudio(
            f"Its audio has {rate_hz} samples per second; it takes {LOWEST_RATE_HZ} to "
            f"{HIGHEST_RATE_HZ}."
        )
    return streams[0]


def _heard(frames: Any) -> Iterator[FloatSamples]:
    for frame in frames:
        samples = frame.to_ndarray().reshape(-1).astype(np.float32, copy=False)
        # Files of decimal numbers may hold any.
        yield np.clip(np.nan_to_num(samples, nan=0.0), -1.0, 1.0)


def _refuse_unmixable(layout: Any) -> None:
    if layout.nb_channels > MOST_CHANNELS and layout.name == f"{layout.nb_channels} channels":
        raise UnreadableAudio(
            f"It has too many channels: {layout.nb_channels}, where {MOST_CHANNELS} can be heard "
            "together. Mix it down to one or two."
        )


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
