"""The pauses in a turn: shortened for the recogniser, and used to cut what is too long for it.

Whisper may take a pause of a second for the end, and leave out the rest of the turn.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.types import HEARING_RATE_HZ, Samples

FRAME_SAMPLES = 320  # 20 ms
FRAMES_PER_S = HEARING_RATE_HZ // FRAME_SAMPLES
QUIET_SHARE = 0.05  # of the level of the loudest frames: -26 dB
LOUD_PERCENTILE = 95  # which frames are the loudest; a click is not
QUIET_LEVEL = 3e-4  # -70 dBFS: below the noise of any microphone that is on

PAUSE_AT_LEAST_S = 0.7  # a shorter one is how people talk
KEPT_S = 0.2  # of a pause at each of its ends: the words beside it stay whole

PIECE_S = 28.0  # the longest piece: what fits into Whisper's window, less some silence
PIECE_AT_LEAST_S = 18.0  # the cut is looked for between the two
CUT_S = 0.2  # a cut lies in the middle of so much quiet


def shorten_pauses(audio: Samples) -> Samples:
    """The audio with each pause of `PAUSE_AT_LEAST_S` or more cut down to twice `KEPT_S`.

    A pause is quiet compared with the speech around it: over a loud background nothing is cut.
    """
    return Shortened.of(audio).audio


@dataclass(frozen=True, slots=True)
class Shortened:
    """Audio without its long pauses, and where each sample of it was before.

    kept: (first, last) samples of what was kept, in order; `audio` is these joined.
    """

    audio: Samples
    kept: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, audio: Samples) -> Shortened:
        """As `shorten_pauses` says."""
        kept = tuple(_kept(audio))
        if len(kept) == 1:
            return cls(audio, kept)
        return cls(np.concatenate([audio[first:last] for first, last in kept]), kept)

    def before_s(self, at_s: float, *, is_end: bool = False) -> float:
        """Where a moment of `audio` was before. is_end: of a sound, which ends ahead of a cut."""
        sample = at_s * HEARING_RATE_HZ
        gone = 0
        for first, last in self.kept:
            length = last - first
            if sample < length or (is_end and sample <= length):
                return (first + sample) / HEARING_RATE_HZ
            sample -= length
            gone = last
        return gone / HEARING_RATE_HZ


def _kept(audio: Samples) -> Iterator[tuple[int, int]]:
    """Spans of samples, never none."""
    whole = len(audio) // FRAME_SAMPLES * FRAME_SAMPLES
    if whole < PAUSE_AT_LEAST_S * HEARING_RATE_HZ:
        yield 0, len(audio)
        return
    of_frames = levels(audio)
    quiet_frames = of_frames < quiet_level(of_frames)
    margin = int(KEPT_S * FRAMES_PER_S)
    start, first = 0, 0
    for quiet, run in itertools.groupby(quiet_frames):
        length = sum(1 for _ in run)
        if quiet and length >= PAUSE_AT_LEAST_S * FRAMES_PER_S:
            yield start * FRAME_SAMPLES, (first + margin) * FRAME_SAMPLES
            start = first + length - margin
        first += length
    yield start * FRAME_SAMPLES, len(audio)


def levels(audio: Samples) -> npt.NDArray[np.float32]:
    """The level (RMS) of each whole frame of `FRAME_SAMPLES`."""
    whole = len(audio) // FRAME_SAMPLES * FRAME_SAMPLES
    return np.sqrt(np.mean(np.square(audio[:whole].reshape(-1, FRAME_SAMPLES)), axis=1))


def quiet_level(of_frames: npt.NDArray[np.float32]) -> float:
    """Below which a frame is part of a pause."""
    if not len(of_frames):
        return QUIET_LEVEL
    return max(QUIET_LEVEL, QUIET_SHARE * float(np.percentile(of_frames, LOUD_PERCENTILE)))


def split(audio: Samples) -> Sequence[Samples]:
    """Pieces of at most `PIECE_S`, cut where it is quiet; joined they are `audio`."""
    pieces: list[Samples] = []
    while len(audio) > PIECE_S * HEARING_RATE_HZ:
        first, last = int(PIECE_AT_LEAST_S * HEARING_RATE_HZ), int(PIECE_S * HEARING_RATE_HZ)
        cut = quietest(audio, first, last)
        pieces.append(audio[:cut])
        audio = audio[cut:]
    return [*pieces, audio]


def quietest(audio: Samples, first: int, last: int) -> int:
    """The sample in [first, last] around which `CUT_S` of audio has the least energy."""
    width = int(CUT_S * HEARING_RATE_HZ)
    first = max(first, width // 2)
    last = min(last, len(audio) - width // 2)
    energy = np.cumsum(np.square(audio, dtype=np.float64))
    centres = np.arange(first, max(last, first + 1))
    power = energy[np.minimum(centres + width // 2, len(audio) - 1)] - energy[centres - width // 2]
    return int(centres[np.argmin(power)])
