"""When each word of a chunk is over, from its text and, once that is known, its length.

The model does not tell. A word that is told too early counts as heard though it was not, so all
guesses are late rather than early: slow until the voice's pace is known, and with a margin then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES

# Seconds that a calm reader takes, fitted to a voice that tells its words' times.
LETTER_S = 0.044
SYLLABLE_S = 0.034
FINAL_S = 0.12  # by which the word before a pause is longer
WIDE_S = 0.22  # a character of a script without spaces
OTHER_S = 0.12  # a letter of a script that is not Latin: some are syllables
DIGIT_S = 0.35  # "seven"
SYMBOL_S = 0.4  # "percent"
CLAUSE_S = 0.23  # the pause at a comma
SENTENCE_S = 0.35
PAUSES_S = {"pause": 0.32, "long_pause": 0.5}  # beside what the voice would pause anyway
SOUND_S = 0.8  # a laugh

LEAD_S = 0.1  # of silence before the first word
TAIL_S = 0.15  # and behind the last

UNKNOWN_PACE = 1.4  # of a voice not heard yet, which may be a slow one
PACE_MARGIN = 1.2  # two sentences of one voice differ by as much
PRIOR_S = 1.0  # how much speech the assumption about the pace is worth
MARGIN_S = 0.08  # of each word: what the fit errs by within a sentence

_WIDE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_PIECE = re.compile(rf"(?P<tag><\|[^<|>]{{0,64}}\|>)|(?P<word>[{_WIDE}]|(?:(?!<\|)[^\s{_WIDE}])+)")
_VOWELS = re.compile(r"[aeiouyà-æè-ïò-öø-ýāēīōūąęıœ]+")
_CLAUSE_MARKS = frozenset(",;:，；：、､–—")
_SENTENCE_MARKS = frozenset(".!?…。！？．｡")
_SYMBOLS = frozenset("%&@#+=€$£°")


@dataclass(slots=True)
class VoicePace:
    """How much longer a voice takes than the estimate; it learns from chunk to chunk."""

    estimated_s: float = PRIOR_S
    taken_s: float = PRIOR_S * UNKNOWN_PACE / PACE_MARGIN

    @property
    def factor(self) -> float:
        return self.taken_s / self.estimated_s * PACE_MARGIN

    def learn(self, estimated_s: float, taken_s: float) -> None:
        self.estimated_s += estimated_s
        self.taken_s += taken_s


@dataclass(frozen=True, slots=True)
class _Timed:
    """A word: where it ends in the text, and in the estimate."""

    text_end: int
    end_s: float


class ChunkWords:
    """One chunk of a reply, `chunk_start_chars` into the text that was pushed.

    text: as it was pushed, before anything was struck out of it; all ends count its characters.
    first_frame: of the chunk, among the frames of the whole reply. Samples count likewise.
    pace: of the reply's voice; it learns when the chunk's length is known.
    """

    def __init__(
        self, text: str, chunk_start_chars: int, first_frame: int, pace: VoicePace | None = None
    ) -> None:
        self._words, self._estimated_s = _timed(text)
        self._start_chars = chunk_start_chars
        self._text_end = chunk_start_chars + len(text)
        self._first_samples = self._start_samples = first_frame * FRAME_SAMPLES
        self._end_samples: int | None = None
        self._pace = pace or VoicePace()
        self._scale = self._pace.factor
        self._next = 0
        self._is_over = False
        self._breaks_off = False
        self._last_samples = self._start_samples

    @property
    def estimated_s(self) -> float:
        """How long a calm reader takes for the chunk."""
        return self._estimated_s

    @property
    def text_end(self) -> int:
        """Of the last word that was told; all of the chunk's text once its last sample was out,
        unless it breaks off."""
        if self._is_over:
            return self._text_end
        if self._next == 0:
            return self._start_chars
        return self._start_chars + self._words[self._next - 1].text_end

    def begins(self, sample: int) -> None:
        """The chunk's first sound is at this sample of the reply; before it nothing is said."""
        start = max(self._start_samples, sample - round(LEAD_S * CODEC_RATE_HZ))
        if self._end_samples is not None and not self._breaks_off:
            self._scale = (self._end_samples - start) / CODEC_RATE_HZ / self._estimated_s
        self._start_samples = start

    def ends(self, frames: int, *, learns: bool = True) -> None:
        """The chunk has so many frames: from now on its words share that time.

        learns: whether the voice's pace can be told from it; not where speech was cut.
        """
        self._end_samples = self._first_samples + frames * FRAME_SAMPLES
        taken_s = (self._end_samples - self._start_samples) / CODEC_RATE_HZ
        if learns:
            self._pace.learn(self._estimated_s, taken_s)
        self._scale = taken_s / self._estimated_s

    def breaks_off(self, frames: int) -> None:
        """The reply ends with so many frames of the chunk: words beyond are never said."""
        self._end_samples = self._first_samples + frames * FRAME_SAMPLES
        self._breaks_off = True

    def told(self, emitted_samples: int) -> list[tuple[int, int]]:
        """The words that are over within the first `emitted_samples` of the reply, told once each.

        (sample of the reply, end in the text), both ascending, from call to call as well; no
        sample lies before those that were out at the last call.
        """
        found: list[tuple[int, int]] = []
        end = self._end_samples
        is_out = end is not None and emitted_samples >= end and not self._breaks_off
        while self._next < len(self._words):
            at = max(self._last_samples, self._at(self._words[self._next]))
            if is_out and end is not None:
                at = min(at, end)
            elif at > emitted_samples:
                break
            found.append((at, self._start_chars + self._words[self._next].text_end))
            self._last_samples = at
            self._next += 1
        self._last_samples = max(self._last_samples, emitted_samples)
        self._is_over = is_out
        return found

    def _at(self, word: _Timed) -> int:
        seconds = word.end_s * self._scale + MARGIN_S
        return self._start_samples + round(seconds * CODEC_RATE_HZ)


def _timed(text: str) -> tuple[list[_Timed], float]:
    """The words of a text with their ends, and how long all of it takes."""
    words: list[_Timed] = []
    now_s = LEAD_S
    pause_s = tags_s = 0.0  # before the next word
    for piece in _PIECE.finditer(text):
        tag = piece["tag"]
        if tag is not None:
            family, _, name = tag.strip("<|>").partition(":")
            tags_s += SOUND_S if family == "sfx" else PAUSES_S.get(name, 0.0)
            continue
        word = piece["word"]
        sound_s, rest_s = _sound_s(word), _pause_s(word)
        if sound_s:
            now_s += pause_s + tags_s + sound_s + (FINAL_S if rest_s else 0.0)
            words.append(_Timed(piece.end(), now_s))
            pause_s = tags_s = 0.0
        pause_s += rest_s
    return words, now_s + tags_s + TAIL_S  # the tail is the pause of the last mark


def _sound_s(word: str) -> float:
    latin = wide = other = digits = symbols = 0
    for char in word:
        if char.isdecimal():
            digits += 1
        elif char.isalpha():
            if ord(char) < 0x250:
                latin += 1
            elif re.match(f"[{_WIDE}]", char):
                wide += 1
            else:
                other += 1
        elif char in _SYMBOLS:
            symbols += 1
    if not latin + wide + other + digits:
        return 0.0
    syllables = len(_VOWELS.findall(word.lower())) if latin else 0
    return (
        latin * LETTER_S
        + syllables * SYLLABLE_S
        + wide * WIDE_S
        + other * OTHER_S
        + digits * DIGIT_S
        + symbols * SYMBOL_S
    )


def _pause_s(word: str) -> float:
    last = word.rstrip("\"'”’»)]")[-1:]
    if last in _SENTENCE_MARKS:
        return SENTENCE_S
    return CLAUSE_S if last in _CLAUSE_MARKS else 0.0
