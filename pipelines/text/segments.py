"""A stream of display text, cut where nothing that must be read as one crosses.

Most segments are one word with the space behind it. A number waits for the word that may be its
unit, a code span for its end, the beginning of a line for what it opens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from pipelines.text.calendar import MONTH_WORD
from pipelines.text.look_ahead import HELD_CHARS, OPENER, construct_end, goes_on
from pipelines.text.marks import CLOSERS, WIDE_MARKS, is_wide, joins_previous
from pipelines.text.markup import LINE_OPENING
from pipelines.text.measures import CODES

RUN_CHARS = 400  # of text without white space, such as base64 or a long address
FENCE_CHARS = 6_000  # of one block of code, which is long; then it was never closed


class Line(Enum):
    """What the line is that a segment stands in."""

    PLAIN = 0
    BLOCK = 1  # a heading or an item of a list: it ends like a sentence
    ROW = 2  # of a table
    RULE = 3  # a line without a word, or an empty one: a paragraph ends
    FENCE = 4  # opens a block of code
    CODE = 5  # inside such a block, its end included


@dataclass(frozen=True, slots=True)
class Segment:
    """text: with the white space behind it. opens: it begins its line."""

    text: str
    line: Line
    opens: bool


# Possessive, because lines of white space alone would take the square of their length otherwise.
_FENCE = re.compile(r"[ \t>]*+(?:[-*+]|\d{1,2}[.)])?[ \t]*(`{3,}|~{3,})([^`\n]*)\n")
_MAY_FENCE = re.compile(
    r"[ \t>]*+(?:[-*+]|\d{1,2}[.)])?[ \t]*(?:`{1,2}$|`{3,}[^`\n]*$|~{1,2}$|~{3,}[^\n]*$)"
)
_FENCE_END = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*$")
_RULE = re.compile(r"[-*_=|:+>\s]*$")


class Segmenter:
    """Feed deltas, get segments; joined they are the deltas joined.

    The text is read character by character, so where the deltas were split makes no difference.
    """

    def __init__(self) -> None:
        self._buffer = ""
        self._opens = True
        self._line = Line.PLAIN
        self._fence = ""  # the mark that opened the block of code that is being read
        self._fence_chars = 0

    @property
    def buffer(self) -> str:
        """What was read and waits for more."""
        return self._buffer

    @property
    def is_open(self) -> bool:
        """Whether what waits is inside of something that has an end of its own."""
        return bool(self._fence) or any(
            construct_end(self._buffer, opener.start(), opener[0]) is None
            for opener in OPENER.finditer(self._buffer)
        )

    def feed(self, delta: str) -> list[Segment]:
        found: list[Segment] = []
        for char in delta:
            self._buffer += char
            if char.isspace() and self._is_plain():
                found.append(self._take(len(self._buffer)))
            elif char.isspace() or is_wide(char) or self._is_endless(char):
                found += self._cut(final=False)
            elif len(self._buffer) > 1 and is_wide(self._buffer[-2]):
                found += self._cut(final=False)
        return found

    def finish(self) -> list[Segment]:
        """Nothing follows: what was held is what it looks like."""
        return self._cut(final=True)

    def _is_endless(self, char: str) -> bool:
        """Whether the buffer, which this character ends, is to be cut though no border is seen. A
        mark that belongs to the letter before is no place for it, until there are too many."""
        length = len(self._buffer)
        return length > RUN_CHARS and (not joins_previous(char) or length > 2 * RUN_CHARS)

    def _is_plain(self) -> bool:
        """Whether the buffer is a word as most are, which begins and holds nothing."""
        word = self._buffer[:-1]
        if self._opens or self._fence or not (word.isascii() and word.isalpha()):
            return False
        return word.islower() or not (word in CODES or MONTH_WORD.fullmatch(word))

    def _cut(self, *, final: bool) -> list[Segment]:
        found: list[Segment] = []
        while self._buffer:
            if self._fence:
                end = self._code_end(final)
            else:
                end = self._border(final)
            if not end:
                break
            found.append(self._take(end))
        return found

    def _take(self, end: int) -> Segment:
        text, self._buffer = self._buffer[:end], self._buffer[end:]
        segment = Segment(text, self._line, self._opens)
        # What comes behind a rule that had to be cut is more of it, or opens the line after all.
        self._opens = text.endswith("\n") or self._line is Line.RULE
        if self._fence:
            self._line = Line.CODE
            self._fence_chars += len(text)
            closes = _FENCE_END.match(text.rstrip("\n")) if segment.opens and self._opens else None
            is_closed = closes is not None and closes[1].startswith(self._fence)
            if segment.line is Line.CODE and (is_closed or self._fence_chars > FENCE_CHARS):
                self._fence = ""
                self._line = Line.PLAIN
        elif self._opens:
            self._line = Line.PLAIN
        return segment

    # ---- blocks of code ----------------------------------------------------------------------

    def _code_end(self, final: bool) -> int:
        end = self._buffer.find("\n") + 1
        if not end and (final or len(self._buffer) > HELD_CHARS):
            return len(self._buffer)
        return end

    # ---- the rest ----------------------------------------------------------------------------

    def _border(self, final: bool) -> int:
        """Where the first segment of the buffer ends; 0 if more must be read to tell."""
        buffer = self._buffer
        may_wait = not final and len(buffer) <= HELD_CHARS
        start = 0
        if self._opens:
            fence = _FENCE.match(buffer if not final else buffer + "\n")
            if fence:
                self._fence, self._fence_chars = fence[1], 0
                self._line = Line.FENCE
                return min(fence.end(), len(buffer))
            line, line_end, _ = buffer.partition("\n")
            if _RULE.match(line) and (line_end or final or not may_wait):
                self._line = Line.RULE
                return len(line + line_end)
            if may_wait and (_MAY_FENCE.match(buffer) or _RULE.match(line)):
                return 0
            opening = LINE_OPENING.match(buffer)
            assert opening is not None  # it may be empty
            self._line = _kind(opening)
            start = opening.end()
        return self._search(start, may_wait, final)

    def _search(self, start: int, may_wait: bool, final: bool) -> int:
        buffer = self._buffer
        word_start = at = start
        while at < len(buffer):
            char = buffer[at]
            if char == "\n":
                return at + 1
            opener = OPENER.match(buffer, at)
            if opener:
                end = construct_end(buffer, at, opener[0])
                if end is None and may_wait:
                    return 0
                at = end or opener.end()
                continue
            if char.isspace():
                joins = goes_on(buffer[:at], buffer[word_start:at], buffer[at + 1 :], final)
                if joins is None and may_wait:
                    return 0
                if not joins or not may_wait and at > HELD_CHARS:
                    return at + 1
                word_start = at + 1
            elif at > word_start and self._parts(buffer, at):
                return at
            at += 1
        if final:
            return len(buffer)
        if len(buffer) > RUN_CHARS:
            is_whole = not joins_previous(buffer[-1]) or len(buffer) > 2 * RUN_CHARS
            return len(buffer) - 1 if is_whole else 0
        return 0

    def _parts(self, buffer: str, at: int) -> bool:
        """Whether a border lies before a character that is not white space."""
        before, char = buffer[at - 1], buffer[at]
        is_mark = char in CLOSERS or char in WIDE_MARKS or char in ".!?…,;:"
        if buffer[:at].rstrip(CLOSERS)[-1:] in WIDE_MARKS and not is_mark:
            return True
        return is_wide(before) and is_wide(char) and not is_mark


def _kind(opening: re.Match[str]) -> Line:
    if opening["row"]:
        return Line.ROW
    return Line.BLOCK if opening.lastgroup else Line.PLAIN
