"""Long audio in pieces that a recogniser takes whole: cut where it is quiet, silence left out.

It comes and goes piece by piece, so that an hour takes no more memory than half a minute.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from realtime.audio.quantise import FloatSamples

RATE_HZ = 16_000  # of all that is recognised
FRAME_SAMPLES = 320  # 20 ms
FRAMES_PER_S = RATE_HZ // FRAME_SAMPLES
LONGEST_S = 28.0  # what recognisers trained on 30 s take, with some silence after it
CUT_FROM_S = 15.0  # a cut is looked for between here and the longest
CUT_FRAMES = 10  # a cut lies in the middle of 200 ms that have the least energy
SILENCE_S = 3.0  # what is left out; shorter pauses belong to the speech
KEPT_FRAMES = 10  # 200 ms of a silence at each of its ends: the words beside it stay whole
QUIET_LEVEL = 3e-4  # -70 dBFS: below the noise of any microphone that is on
QUIET_SHARE = 0.02  # of the loudest frames, -34 dB: a far speaker beside a near one is heard
LOUD_PERCENTILE = 95  # which frames are the loudest; a click is not

Levels = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Piece:
    """samples: float32 at `RATE_HZ`. start_s: from the beginning of the whole."""

    samples: FloatSamples
    start_s: float

    @property
    def end_s(self) -> float:
        return self.start_s + len(self.samples) / RATE_HZ


def cut(audio: Iterable[FloatSamples]) -> Generator[Piece, None, None]:
    """Pieces of at most `LONGEST_S`, in order; none of audio in which there is nothing to hear."""
    waiting = np.zeros(0, np.float32)
    at = 0  # of the first sample that waits
    for samples in audio:
        waiting = np.concatenate([waiting, samples])
        while len(waiting) >= LONGEST_S * RATE_HZ:
            first, last, rest = _next_cut(waiting, is_all=False)
            if last > first:
                yield Piece(waiting[first:last], (at + first) / RATE_HZ)
            elif not rest:
                break
            waiting, at = waiting[rest:], at + rest
    while len(waiting):
        first, last, rest = _next_cut(waiting, is_all=True)
        if last > first:
            yield Piece(waiting[first:last], (at + first) / RATE_HZ)
        waiting, at = waiting[rest:], at + rest


def _next_cut(audio: FloatSamples, *, is_all: bool) -> tuple[int, int, int]:
    """The samples [first, last) of a piece, none if they are equal, and where the rest begins.

    is_all: nothing follows.
    """
    of_frames = _levels(audio)
    loud = of_frames >= _quiet_level(of_frames)
    if not loud.any():
        if is_all:
            return 0, 0, len(audio)
        return 0, 0, max(0, len(audio) - KEPT_FRAMES * FRAME_SAMPLES)
    first = max(0, int(np.argmax(loud)) - KEPT_FRAMES)
    silence = _first_silence(loud[first:])
    longest = int(LONGEST_S * FRAMES_PER_S)
    if silence is not None and silence[0] + KEPT_FRAMES <= longest:
        last = first + silence[0] + KEPT_FRAMES
        return first * FRAME_SAMPLES, last * FRAME_SAMPLES, (first + silence[1]) * FRAME_SAMPLES
    if len(of_frames) - first <= longest:
        if is_all:
            end = len(of_frames) - _quiet_tail(loud)
            last = min(len(audio), (end + KEPT_FRAMES) * FRAME_SAMPLES)
            return first * FRAME_SAMPLES, last, len(audio)
        return 0, 0, first * FRAME_SAMPLES  # more may fit
    last = first + _quietest(of_frames[first : first + longest])
    return first * FRAME_SAMPLES, last * FRAME_SAMPLES, last * FRAME_SAMPLES


def _first_silence(loud: npt.NDArray[np.bool_]) -> tuple[int, int] | None:
    """Where the first silence behind a sound begins, and where its last part, which is kept."""
    at = 0
    for is_loud, run in itertools.groupby(loud):
        length = sum(1 for _ in run)
        if not is_loud and at and length >= SILENCE_S * FRAMES_PER_S:
            return at, at + length - KEPT_FRAMES
        at += length
    return None


def _quiet_tail(loud: npt.NDArray[np.bool_]) -> int:
    return int(np.argmax(loud[::-1]))


def _quietest(of_frames: Levels) -> int:
    """The frame before which `CUT_FRAMES` have the least energy."""
    from_frame = int(CUT_FROM_S * FRAMES_PER_S)
    energy = np.convolve(np.square(of_frames[from_frame:]), np.ones(CUT_FRAMES), "valid")
    return from_frame + int(np.argmin(energy)) + CUT_FRAMES // 2


def _levels(audio: FloatSamples) -> Levels:
    """RMS of each frame, the last one of which may be shorter."""
    padded = np.pad(audio, (0, -len(audio) % FRAME_SAMPLES))
    return np.sqrt(np.mean(np.square(padded.reshape(-1, FRAME_SAMPLES)), axis=1))


def _quiet_level(of_frames: Levels) -> float:
    return max(QUIET_LEVEL, QUIET_SHARE * float(np.percentile(of_frames, LOUD_PERCENTILE)))
