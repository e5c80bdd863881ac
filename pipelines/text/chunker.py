"""Streamed text to chunks that are worth speaking.

The first chunk is short, so that sound comes early; the next ones grow, because a longer chunk
has better prosody, and the audio of the one before gives the time to write it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.text.marks import (
    CLAUSE_MARKS,
    CLOSERS,
    SENTENCE_MARKS,
    WIDE_MARKS,
    ends_clause,
    is_wide,
    joins_previous,
    leads,
    may_go_on,
    opens_line,
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """text: display text, with its white space. end: display characters up to its end."""

    text: str
    end: int


@dataclass(frozen=True, slots=True)
class Step:
    """A clause end cuts from `least_words` on; at `most_words` the chunk is cut anyway.

    That cut retreats to the last clause end, if at least `retreat_words` come before it.
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
MOST_CHARS = 400  # for text that has no words to count, such as rules, tables and base64

# Weights are counted in half words: a character of a wide script is about half a word.
WORD_HALVES = 2
WIDE_HALVES = 1


@dataclass(frozen=True, slots=True)
class Border:
    """A place where the buffer may be cut, and how much text comes before it."""

    index: int = 0
    halves: int = 0


class Chunker:
    """Feed deltas, get chunks. The chunks joined are the deltas joined.

    Text is read character by character, so the borders do not depend on where the deltas were
    split; only `pause` looks at the clock, on behalf of its caller. Borders lie behind white
    space, or between characters of scripts that have none; never inside a word or a number.
    """

    def __init__(self) -> None:
        self._released_chars = 0
        self._released_chunks = 0
        self._at_line_start = True  # whether the buffer begins a line
        self._empty()

    @property
    def pending(self) -> bool:
        """Whether text waits that `pause` or `finish` might release."""
        return bool(self._buffer)

    def feed(self, delta: str) -> list[Chunk]:
        chunks: list[Chunk] = []
        for char in delta:
            chunks += self._read(char)
        return chunks

    def pause(self) -> list[Chunk]:
        """The writer pauses: release what is whole and long enough to be worth speaking."""
        first = self._released_chunks == 0
        least_clause = PAUSE_WORDS if first else self._step.retreat_words
        least_words = PAUSE_WORDS if first else self._step.least_words
        tail = self._buffer[self._word_start :]
        if ends_clause(tail) and not may_go_on(tail):
            whole = Border(len(self._buffer), self._halves + _weight(tail))
            if whole.halves >= least_clause * WORD_HALVES:
                return self._cut(whole)
        if self._clause.halves >= least_clause * WORD_HALVES:
            return self._cut(self._clause)
        if self._soft.halves >= least_words * WORD_HALVES:
            return self._cut(self._soft)
        return []

    def finish(self) -> list[Chunk]:
        """No more text comes: release the rest."""
        return self._cut(Border(len(self._buffer))) if self._buffer else []

    @property
    def _step(self) -> Step:
        return STEPS[min(self._released_chunks, len(STEPS) - 1)]

    def _empty(self) -> None:
        self._buffer = ""
        self._halves = 0  # of the words that are whole, and of the wide characters
        self._word_start = 0  # where the run without white space begins that is being read
        self._soft = Border()  # the last place where a cut is allowed
        self._clause = Border()  # the last one that ends a clause

    def _read(self, char: str) -> list[Chunk]:
        chunks: list[Chunk] = []
        if char.isspace():
            self._buffer += char
            chunks = self._read_space(char)
        else:
            chunks = self._read_border(char)
            self._buffer += char
            if is_wide(char):
                self._halves += WIDE_HALVES
        return chunks

    def _read_space(self, space: str) -> list[Chunk]:
        word = self._buffer[self._word_start : -1]
        before = self._buffer[: self._word_start]
        self._word_start = len(self._buffer)
        self._halves += _weight(word)
        if len(self._buffer) >= MOST_CHARS:
            return self._cut(Border(len(self._buffer)))
        if space != "\n" and (
            leads(word) or (self._begins_line(before) and (not word or opens_line(word)))
        ):
            return []
        return self._offer(is_clause=space == "\n" or ends_clause(word))

    def _read_border(self, char: str) -> list[Chunk]:
        """What lies between a character, which is not white space, and the one before it."""
        run = self._buffer[self._word_start :]
        if not run:
            return []
        chars = len(self._buffer)
        if chars >= MOST_CHARS and (not joins_previous(char) or chars >= 2 * MOST_CHARS):
            return self._cut(self._soft if self._soft.index else Border(len(self._buffer)))
        goes_on = char in CLOSERS or char in WIDE_MARKS
        goes_on = goes_on or char in SENTENCE_MARKS or char in CLAUSE_MARKS
        if run.rstrip(CLOSERS)[-1:] in WIDE_MARKS and not goes_on:
            return self._offer(is_clause=True)
        if is_wide(run[-1]) and is_wide(char):
            return self._offer(is_clause=False)
        return []

    def _begins_line(self, before: str) -> bool:
        if before.strip():
            return before.rstrip(" \t").endswith("\n")
        return self._at_line_start or "\n" in before

    def _offer(self, *, is_clause: bool) -> list[Chunk]:
        """The end of the buffer is a place to cut: do so if there is enough, else remember it."""
        here = Border(len(self._buffer), self._halves)
        if is_clause:
            if here.halves >= self._step.least_words * WORD_HALVES:
                return self._cut(here)
            self._clause = here
        self._soft = here
        if here.halves >= self._step.most_words * WORD_HALVES:
            retreats = self._clause.halves >= self._step.retreat_words * WORD_HALVES
            return self._cut(self._clause if retreats else here)
        return []

    def _cut(self, border: Border) -> list[Chunk]:
        text, rest = self._buffer[: border.index], self._buffer[border.index :]
        self._released_chars += len(text)
        self._released_chunks += 1
        self._at_line_start = text.endswith("\n")
        self._empty()
        # What was read beyond the border is read again, with the next chunk's sizes.
        return [Chunk(text, self._released_chars), *self.feed(rest)]


def _weight(word: str) -> int:
    """Of a run without white space, beside its wide characters, which count one by one."""
    return WORD_HALVES if any(char.isalnum() and not is_wide(char) for char in word) else 0
