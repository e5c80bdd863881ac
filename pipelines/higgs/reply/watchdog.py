"""Speech that runs away: it does not end, goes round in a loop, or falls silent.

A model now and then misses its end. What catches it is generous: an honest slow speaker must never
be cut, and a runaway costs only the seconds until it is seen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES, FRAMES_PER_S
from pipelines.higgs.rows import Codes
from pipelines.higgs.text.tags import CONTROL_TAG
from pipelines.higgs.text.vocabulary import CONTROL_TAGS
from pipelines.types import Samples


class RunawayKind(Enum):
    REPETITION = "repetition"
    SILENCE = "silence"
    LEADING_SILENCE = "leading silence"


@dataclass(frozen=True, slots=True)
class Runaway:
    """since_frame: the first frame of the chunk that should not be heard."""

    kind: RunawayKind
    since_frame: int


# ---- how many rows a text may take -----------------------------------------------------------

MOST_ROWS = 2048  # what the model was trained to speak at once: 82 s

# Rows of 40 ms; about three times what a calm speaker takes.
BASE_ROWS = 75  # breath, silence at both ends, and the delay of the codebooks
LETTER_ROWS = 5
CAPITAL_ROWS = 14  # of a word in capitals, which may be spelt: "WWW"
CONSONANT_ROWS = 8  # of scripts that leave vowels out, or write syllables with marks
WIDE_ROWS = 16  # a syllable or two
DIGIT_ROWS = 25  # "seven"
SYMBOL_ROWS = 25  # "percent"
MARK_ROWS = 15  # a pause of 600 ms at a comma or full stop
PAUSE_ROWS = {"pause": 30, "long_pause": 60}  # the longest documented is 700 and 1500 ms
SOUND_ROWS = 75  # 3 s of laughter

# The slowest documented speeds are 0.65 and 0.85; singing is long-drawn, more so than any speed.
STRETCH = {"speed_very_slow": 1.6, "speed_slow": 1.25, "singing": 2.0}

_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")


def row_limit(text: str) -> int:
    """How many rows the speech of a text may have, at most MOST_ROWS. Control tags count."""
    rows = float(BASE_ROWS)
    stretch = 1.0
    for part in CONTROL_TAG.split(text):
        tag = CONTROL_TAGS.get(part)
        if tag is None:
            rows += sum(map(_rows_of, part)) * stretch
            spelt = sum(len(word) for word in _CAPITALS.findall(part))
            rows += spelt * (CAPITAL_ROWS - LETTER_ROWS) * stretch
        elif tag.is_sound:
            rows += SOUND_ROWS
        elif tag.is_pause:
            rows += PAUSE_ROWS[tag.name]
        else:
            stretch = max(stretch, STRETCH.get(tag.name, 1.0))
    return min(MOST_ROWS, round(rows))


def _rows_of(char: str) -> int:
    category = unicodedata.category(char)
    match category[0]:
        case "L" if category == "Lo":
            is_syllable = unicodedata.east_asian_width(char) in "WFH"
            return WIDE_ROWS if is_syllable else CONSONANT_ROWS
        case "L":
            return LETTER_ROWS
        case "N":
            return DIGIT_ROWS
        case "S":
            return SYMBOL_ROWS
        case "P":
            return SYMBOL_ROWS if char in "%&@#*/" else MARK_ROWS
        case _:
            return 0


# ---- loops -----------------------------------------------------------------------------------

MOST_PERIOD = 50  # frames: two seconds, a sentence said over and over
LOOP_FRAMES = 5 * FRAMES_PER_S  # longer than any silence that the other rule lets pass
LOOP_PERIODS = 4  # a refrain may come back; nobody says it with the same codes five times
LIKE_CODES = 0.75  # of a frame's codes that return in a loop; sampling varies the finest ones
MOST_MISSES = 3  # frames in a row without a match, after which it was no loop


class RepetitionWatch:
    """Sees when frames repeat those of one period before, for seconds.

    Each period has a score: how many frames matched since the last few that did not. Codes of
    speech do not return in order even where the words do; those of a silence do, and have to be
    let pass. Frames are looked at by the second: many streams are watched between two steps.
    """

    def __init__(self) -> None:
        self._frames = 0
        self._pending: list[npt.NDArray[np.int32] | tuple[int, ...]] = []
        self._last: npt.NDArray[np.int32] | None = None  # the last MOST_PERIOD frames
        self._scores = np.zeros(MOST_PERIOD, np.int64)
        self._misses = np.zeros(MOST_PERIOD, np.int64)
        self._since = np.zeros(MOST_PERIOD, np.int64)
        self._periods = np.arange(1, MOST_PERIOD + 1)
        self._needed = np.maximum(LOOP_FRAMES, self._periods * LOOP_PERIODS)

    def feed(self, codes: Codes | Sequence[tuple[int, ...]]) -> Runaway | None:
        """codes: the next frames of the chunk, each of so many codebooks, not delayed.

        The frame told is the first that repeats another.
        """
        self._pending.extend(codes)
        while len(self._pending) >= FRAMES_PER_S:
            block = np.array(self._pending[:FRAMES_PER_S], np.int32)
            del self._pending[:FRAMES_PER_S]
            runaway = self._look(block)
            if runaway is not None:
                return runaway
        return None

    def _look(self, block: npt.NDArray[np.int32]) -> Runaway | None:
        count, codebooks = block.shape
        last = self._last
        if last is None:
            last = np.full((MOST_PERIOD, codebooks), -1, np.int32)
        frames = np.concatenate([last, block])
        self._last = frames[-MOST_PERIOD:]
        before = MOST_PERIOD + np.arange(count)[:, None] - self._periods
        same = np.count_nonzero(frames[before] == block[:, None], axis=2)
        matches = same >= LIKE_CODES * codebooks
        first = self._frames
        self._frames += count
        if not matches.any() and not self._scores.any():
            return None
        for frame, matched in enumerate(matches, start=first):
            self._since[(self._scores == 0) & matched] = frame
            self._misses = np.where(matched, 0, self._misses + 1)
            self._scores = np.where(self._misses > MOST_MISSES, 0, self._scores + matched)
            tripped = np.flatnonzero(self._scores >= self._needed)
            if len(tripped):
                return Runaway(RunawayKind.REPETITION, int(self._since[tripped[0]]))
        return None


# ---- silence ---------------------------------------------------------------------------------

BLOCK_SAMPLES = CODEC_RATE_HZ // 50  # 20 ms: shorter than any sound of speech
QUIET = 0.0025  # -52 dBFS; the codec's own silence is below -60
QUIET_TO_LOUDEST = 0.016  # -36 dB: breath and room noise of a voice that was cloned
SILENCE_MS = 2_500  # a pause between sentences is below 1.5 s
LEADING_MS = 1_500  # speech begins within 500 ms
PAUSE_MS = {"pause": 1_000, "long_pause": 2_000}  # the longest documented is 700 and 1500 ms


class SilenceWatch:
    """Sees when a chunk's sound falls silent for longer than its text explains."""

    def __init__(self, text: str = "") -> None:
        """text: what is spoken, for its pauses."""
        parts = CONTROL_TAG.split(text)
        pauses = [PAUSE_MS.get(CONTROL_TAGS[p].name, 0) for p in parts if p in CONTROL_TAGS]
        longest_ms = max(pauses, default=0)
        leads = bool(parts) and not parts[0].strip()  # the text may begin with a pause
        self._most_blocks = _blocks(SILENCE_MS + longest_ms)
        self._most_leading_blocks = _blocks(LEADING_MS + (longest_ms if leads else 0))
        self.onset_samples: int | None = None  # where the chunk's first sound is
        self._blocks = 0
        self._silent_since = 0
        self._loudest = 0.0
        self._rest = np.zeros(0, np.float32)

    @property
    def has_heard(self) -> bool:
        """Whether anything of the chunk was louder than silence."""
        return self.onset_samples is not None

    @property
    def judged_frames(self) -> int:
        """How far it was heard: when it saw a runaway, how many frames it took to see that."""
        return -(-self._blocks * BLOCK_SAMPLES // FRAME_SAMPLES)

    def feed(self, samples: Samples) -> Runaway | None:
        """samples: float32 [n] at 24 kHz, the next ones of the chunk.

        The frame told is the first of which all is silent.
        """
        pending = np.concatenate([self._rest, samples]) if len(self._rest) else samples
        count = len(pending) // BLOCK_SAMPLES
        self._rest = pending[count * BLOCK_SAMPLES :]
        blocks = pending[: count * BLOCK_SAMPLES].reshape(count, BLOCK_SAMPLES)
        return self._judge(np.sqrt(np.mean(np.square(blocks, dtype=np.float64), axis=1)).tolist())

    def _judge(self, levels: Iterable[float]) -> Runaway | None:
        for level in levels:
            self._blocks += 1
            self._loudest = max(self._loudest, level)
            if level > max(QUIET, QUIET_TO_LOUDEST * self._loudest):
                self._silent_since = self._blocks
                if self.onset_samples is None:
                    self.onset_samples = (self._blocks - 1) * BLOCK_SAMPLES
                continue
            leading = self._silent_since == 0
            most = self._most_leading_blocks if leading else self._most_blocks
            if self._blocks - self._silent_since > most:
                kind = RunawayKind.LEADING_SILENCE if leading else RunawayKind.SILENCE
                since_samples = self._silent_since * BLOCK_SAMPLES
                return Runaway(kind, -(-since_samples // FRAME_SAMPLES))
        return None


def _blocks(duration_ms: int) -> int:
    return duration_ms * CODEC_RATE_HZ // 1000 // BLOCK_SAMPLES
