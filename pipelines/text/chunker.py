"""Words to chunks that are worth speaking.

The first chunk is short, so that sound comes early; the next ones grow, because a longer chunk
has better prosody, and the audio of the one before gives the time to write it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.text.marks import CLOSERS, INITIALS, OPENERS, ends_clause, is_wide
from pipelines.text.reading import Passage, Word


@dataclass(frozen=True, slots=True)
class WordSpan:
    """end: of a word in `Utterance.spoken`. display_end: characters of the whole reply that are
    covered once the word has been heard."""

    end: int
    display_end: int


@dataclass(frozen=True, slots=True)
class Utterance:
    """spoken: what the voice gets; empty if there is nothing to say, and only the position moves.

    words: a span for every word of `spoken`; for scripts without spaces, for every character.
    end: characters of the whole reply that are covered once all of it has been heard.
    """

    spoken: str
    words: tuple[WordSpan, ...]
    end: int


@dataclass(frozen=True, slots=True)
class Step:
    """A clause end cuts from `least_words` on; at `most_words` the chunk is cut anyway.

    That cut retreats to the last clause end, if at least `retreat_words` come before it. Words are
    those that are said: a number may be several.
    """

    least_words: int
    most_words: int
    retreat_words: int


STEPS = (
    Step(3, 4, 2),  # the audio of one or two words is over before the next chunk can be spoken
    Step(4, 8, 2),  # four words last more than a second: eight can be written meanwhile
    Step(8, 16, 4),
    Step(12, 24, 6),  # from the fourth on: most sentences fit
)
PAUSE_WORDS = 2  # of the first chunk, when the writer pauses: better short than silent
SILENT_CHARS = 200  # of text that cannot be spoken, until the position moves for them alone
MOST_CHARS = 400  # of a chunk whose words cannot be counted, such as base64
LONGEST_WORDS = 24  # of one number or name, which is not cut; beyond, it is cut between words

# Weights are counted in half words: a character of a wide script is about half a word.
WORD_HALVES = 2
WIDE_HALVES = 1


@dataclass(frozen=True, slots=True)
class Border:
    """A place where the pending words may be cut: how many come before it, and their weight."""

    words: int = 0
    halves: int = 0


class Chunker:
    """Give passages, get utterances, which cover the display text without a gap."""

    def __init__(self) -> None:
        self._released = 0  # utterances with words
        self._released_end = 0
        self._end = 0  # display characters that were read
        self._empty()

    @property
    def pending(self) -> bool:
        return bool(self._words)

    def read(self, passage: Passage) -> list[Utterance]:
        found: list[Utterance] = []
        self._end = passage.end
        if passage.words:
            last = passage.words[-1]
            last.spaced = last.spaced or passage.ends_line
            _mark(last, passage.mark)
            for word in passage.words:
                found += self._add(word, ends_line=passage.ends_line and word is last)
        elif self._words:
            last = self._words[-1]
            last.end = passage.end
            last.spaced = last.spaced or passage.ends_line
            _mark(last, passage.mark)
            if passage.ends_line or passage.mark:
                found += self._offer(is_clause=True)
        elif self._end - self._released_end >= SILENT_CHARS:
            found.append(self._silence())
        return found

    def pause(self) -> list[Utterance]:
        """The writer pauses: release what is long enough to be worth speaking."""
        first = self._released == 0
        least_clause = PAUSE_WORDS if first else self._step.retreat_words
        least_words = PAUSE_WORDS if first else self._step.least_words
        if self._clause.halves >= least_clause * WORD_HALVES:
            return self._cut(self._clause)
        if self._soft.halves >= least_words * WORD_HALVES:
            return self._cut(self._soft)
        return []

    def break_off(self) -> list[Utterance]:
        """The text stopped in the middle: release it up to its last clause end; drop the rest."""
        found = self._cut(self._clause) if self._clause.words else []
        self._empty()
        return found

    def finish(self) -> list[Utterance]:
        """No more text comes: release the rest."""
        found: list[Utterance] = []
        if self._words:
            found += self._cut(Border(len(self._words)))
        if self._end > self._released_end:
            found.append(self._silence())
        return found

    @property
    def _step(self) -> Step:
        return STEPS[min(self._released, len(STEPS) - 1)]

    def _empty(self) -> None:
        self._words: list[Word] = []
        self._halves = self._chars = 0
        self._soft = Border()  # the last place where a cut is allowed
        self._clause = Border()  # the last one that ends a clause

    def _add(self, word: Word, *, ends_line: bool = False) -> list[Utterance]:
        self._words.append(word)
        self._halves += _weight(word.text)
        self._chars += len(word.text)
        if self._chars >= MOST_CHARS:
            return self._cut(self._soft if self._soft.words else Border(len(self._words)))
        if word.glued and len(self._words) - self._soft.words < LONGEST_WORDS:
            return []
        return self._offer(is_clause=ends_line or ends_clause(word.text))

    def _offer(self, *, is_clause: bool) -> list[Utterance]:
        """The end of the words is a place to cut: do so if there is enough, else remember it."""
        here, before = Border(len(self._words), self._halves), self._soft
        step = self._step
        if is_clause:
            if step.least_words * WORD_HALVES <= here.halves <= step.most_words * WORD_HALVES:
                return self._cut(here)
            self._clause = here
        self._soft = here
        if here.halves < step.most_words * WORD_HALVES:
            return []
        if here.halves > step.most_words * WORD_HALVES:
            # The last number was long: better without it, if enough remains.
            for border in (self._clause, before):
                if border.words < here.words and border.halves >= step.retreat_words * WORD_HALVES:
                    return self._cut(border)
        retreats = self._clause.halves >= step.retreat_words * WORD_HALVES
        return self._cut(self._clause if retreats else here)

    def _cut(self, border: Border) -> list[Utterance]:
        said, rest = self._words[: border.words], self._words[border.words :]
        spoken = ""
        spans: list[WordSpan] = []
        for word in said:
            spoken += word.text
            spans.append(WordSpan(len(spoken), word.end))
            spoken += " " if word.spaced else ""
        self._released += 1
        self._released_end = said[-1].end
        self._empty()
        found = [Utterance(spoken, tuple(spans), self._released_end)]
        # What was read beyond the border is read again, with the next chunk's sizes.
        for word in rest:
            found += self._add(word)
        return found

    def _silence(self) -> Utterance:
        self._released_end = self._end
        return Utterance("", (), self._end)


def _mark(word: Word, mark: str) -> None:
    """A pause for the ear where the eye sees a line end or a border of a table."""
    bare = word.text.rstrip(CLOSERS)
    if not mark or not bare:
        return
    if bare[-1] == "," and mark == ".":
        word.text = word.text[: len(bare) - 1] + mark
    elif bare[-1].isalnum():
        word.text += mark
    elif bare.count(".") > 1 and INITIALS.fullmatch(bare.lstrip(OPENERS)):
        word.text += ","  # a voice hears no end in the full stop of "p.m."


def _weight(word: str) -> int:
    """A run of letters and digits, and its wide characters one by one."""
    wide = sum(map(is_wide, word))
    is_word = any(char.isalnum() and not is_wide(char) for char in word)
    return wide * WIDE_HALVES + is_word * WORD_HALVES
