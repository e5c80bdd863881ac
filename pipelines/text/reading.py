"""Display text to the words that are said, while it is being written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.text import addresses, calendar, markup, numbers, roman, symbols
from pipelines.text.aligned import INNER, Aligned, last_word
from pipelines.text.marks import CLAUSE_MARKS, OPENERS, SENTENCE_MARKS, WIDE_MARKS, is_wide, leads
from pipelines.text.measures import INCH_MARK
from pipelines.text.segments import RUN_CHARS, Line, Segment, Segmenter

CODE_NOTICE = "The code is on the screen."
LATIN_WORDS = 4  # in a row, until digits are English again after text in another script

_MARKS = SENTENCE_MARKS | CLAUSE_MARKS | WIDE_MARKS
_SHORT_WORDS = calendar.SHORT_DAYS | {"Ave", "Blvd", "Ctrl", "Cmd"}
_DASHES = frozenset({"-", "–", "—", "--", "---", "−"})
_QUOTE = re.compile('"')
_INCHES_AHEAD = re.compile(r"(?<![\w.'’′/])\d+(?:[-–]\d+)?(?:\.\d+)?$|[x×]\d[\d.]*$")
_FEET_OR_PART_AHEAD = re.compile(r"\d['’′/]\s?\d{1,2}$")
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?[,!?;:]?\s?")


@dataclass(slots=True)
class Word:
    """text: what is said, without white space. end: display characters covered once it was heard,
    with the white space and what cannot be said behind it. glued: it must be said in one breath
    with the next one. spaced: a space follows."""

    text: str
    end: int
    glued: bool = False
    spaced: bool = True


@dataclass(frozen=True, slots=True)
class Passage:
    """What was read of one segment: its words, or none.

    end: display characters up to its end. mark: punctuation that the word before must have.
    ends_line: a line ends behind it.
    """

    words: tuple[Word, ...]
    end: int
    mark: str = ""
    ends_line: bool = False


class Reader:
    """Feed deltas, get passages; their ends are those of consecutive pieces of the text."""

    def __init__(self) -> None:
        self._segmenter = Segmenter()
        self._end = 0
        self._is_foreign = False  # digits belong to text in another script
        self._latin_words = 0
        self._before = ""  # the word in front of what is read
        self._is_quoted = False  # by a straight quotation mark in the same line

    @property
    def buffer(self) -> str:
        """Display text that waits for more."""
        return self._segmenter.buffer

    @property
    def is_open(self) -> bool:
        """Whether what waits is inside of something that has an end of its own."""
        return self._segmenter.is_open

    def feed(self, delta: str) -> list[Passage]:
        return [self._read(segment) for segment in self._segmenter.feed(delta)]

    def finish(self) -> list[Passage]:
        return [self._read(segment) for segment in self._segmenter.finish()]

    def _read(self, segment: Segment) -> Passage:
        start, self._end = self._end, self._end + len(segment.text)
        if segment.opens:
            self._before, self._is_quoted = "", False
        passage = self._read_text(segment, start)
        self._before = last_word(segment.text).strip(OPENERS) or self._before
        return passage

    def _read_text(self, segment: Segment, start: int) -> Passage:
        ends_line = segment.text.endswith("\n")
        is_text = segment.line in (Line.PLAIN, Line.BLOCK, Line.ROW)
        if is_text and not (segment.opens or ends_line) and _is_plain(segment.text):
            return self._read_plain(segment.text)
        match segment.line:
            case Line.CODE:
                return Passage((), self._end)
            case Line.FENCE:
                notice = CODE_NOTICE.split()
                words = tuple(Word(said, start, glued=True) for said in notice)
                words[-1].glued, words[-1].end = False, self._end
                return Passage(words, self._end, mark=".", ends_line=True)
            case _:
                pass
        if segment.line is Line.RULE:
            return Passage((), self._end, mark=".", ends_line=True)
        text = Aligned.at(segment.text, start, self._before)
        if segment.opens:
            markup.drop_line_opening(text)
        if segment.line is Line.ROW:
            text.apply(calendar.CELL_RULES)
        self._say(text)
        words = tuple(self._words(text, segment.text))
        mark = ""
        stripped = segment.text.strip()
        if not words and (stripped in _DASHES and not segment.opens):
            mark = ","
        elif not words and text.text.strip()[:1] in _MARKS:
            mark = text.text.strip()[:1]
        elif not words and stripped == "|" and not segment.opens:
            mark = ","
        elif words and (stripped.endswith("|") or stripped.split()[-1] in _DASHES):
            mark = ","
        if ends_line and segment.line is not Line.PLAIN:
            mark = "."
        return Passage(words, self._end, mark, ends_line)

    def _read_plain(self, text: str) -> Passage:
        """Most words: nothing applies to them."""
        if self._is_foreign or not text.isascii():
            self._learn_script(text)
        word = text.rstrip()
        return Passage((Word(word, self._end, spaced=len(word) < len(text)),), self._end)

    def _say(self, text: Aligned) -> None:
        symbols.drop_pictures(text)
        text.apply(markup.MARKUP_RULES)
        text.sub(_QUOTE, self._read_quote)
        text.apply(addresses.RULES)
        text.apply(markup.EMPHASIS_RULES)
        self._learn_script(text.text)
        if self._is_foreign:
            text.apply(symbols.FOREIGN_RULES)
        else:
            text.apply(symbols.ABBREVIATION_RULES)
            text.apply(roman.RULES)
            numbers.speak_numbers(text)
            text.apply(addresses.NAME_RULES)
            text.apply(symbols.SIGN_RULES)
        text.apply(symbols.SPACE_RULES)

    def _read_quote(self, found: re.Match[str]) -> str | None:
        """A straight quotation mark behind a number, when none is open, is that of inches."""
        ahead = found.string[: found.start()]
        if not self._is_quoted and _INCHES_AHEAD.search(ahead):
            return INCH_MARK
        if not self._is_quoted and _FEET_OR_PART_AHEAD.search(ahead):
            return None  # which are read with their numbers
        self._is_quoted = not self._is_quoted
        return None

    def _learn_script(self, text: str) -> None:
        """English numbers in Chinese or Russian text would be strange."""
        for word in text.split():
            letters = [char for char in word if char.isalpha()]
            if not letters:
                continue
            others = sum(not _is_latin(char) for char in letters)
            if others > 1 or any(map(is_wide, letters)):  # one letter may be of a formula
                self._is_foreign, self._latin_words = True, 0
            elif self._is_foreign and not others:
                self._latin_words += 1
                self._is_foreign = self._latin_words < LATIN_WORDS

    def _words(self, text: Aligned, display: str) -> Iterator[Word]:
        found = [word for word in text.words() if any(map(str.isalnum, word.text))]
        end = self._end - len(display)
        # What was expanded stands apart even in a long run that had to be cut.
        is_expanded = len(display) >= RUN_CHARS and text.text != display
        is_last_spaced = display[-1].isspace() or is_expanded
        for index, word in enumerate(found):
            is_last = index == len(found) - 1
            is_inner = word.end == INNER
            if not is_inner:
                end = max(end, word.end)
            yield Word(
                word.text,
                self._end if is_last else end,
                glued=is_inner or (is_last and leads(display.strip())),
                spaced=is_last_spaced if is_last else True,
            )


def _is_plain(text: str) -> bool:
    if _PLAIN_WORD.fullmatch(text) is None or text[:2] in ("vs", "pm", "PM"):
        return False
    word = text.rstrip("\t ,!?;:")
    if word in _SHORT_WORDS or roman.is_numeral(word):
        return False
    return text.isascii() or all(char.isalpha() for char in text.rstrip("\t ,!?;:"))


def _is_latin(char: str) -> bool:
    code = ord(char)
    return code < 0x250 or 0x1E00 <= code <= 0x1EFF or 0x2100 <= code <= 0x214F
