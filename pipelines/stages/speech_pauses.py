"""The pauses in a turn: shortened for the recogniser, and used to cut what is too long for it.

Whisper may take a pause of a second for the end, and leave out the rest of the turn.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

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
    whole = len(audio) // FRAME_SAMPLES * FRAME_SAMPLES
    if whole < PAUSE_AT_LEAST_S * HEARING_RATE_HZ:
        return audio
    frames = audio[:whole].reshape(-1, FRAME_SAMPLES)
    levels = np.sqrt(np.mean(np.square(frames), axis=1))
    threshold = max(QUIET_LEVEL, QUIET_SHARE * float(np.percentile(levels, LOUD_PERCENTILE)))
    kept = np.ones(len(frames), bool)
    margin = int(KEPT_S * FRAMES_PER_S)
    first = 0
    for quiet, run in itertools.groupby(levels < threshold):
        length = sum(1 for _ in run)
        if quiet and length >= PAUSE_AT_LEAST_S * FRAMES_PER_S:
            kept[first + margin : first + length - margin] = False
        first += length
    return np.concatenate([frames[kept].ravel(), audio[whole:]])


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
