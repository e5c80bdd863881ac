"""Transcripts with times: the segments that are read at once, and subtitles in two formats.

SRT: the format of SubRip. VTT: W3C WebVTT. Both hold text and times alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

LONGEST_S = 7.0  # of one subtitle: what stays longer is taken for the next one
LONGEST_CHARACTERS = 84  # two lines of 42, as broadcasters have it
PAUSE_S = 0.7  # between words, ends a segment
SENTENCE_END = re.compile(r"""[.!?…。！？]["'”’)\]]*$""")
CLAUSE_END = re.compile(r"""[,;:，、；：]["'”’)\]]*$""")
CLAUSE_CHARACTERS = 42  # from a line on, a segment may end with a clause
SHORT_CHARACTERS = (
    21  # half a line: a sentence's last segment is not shorter, if that can be helped
)
MS_PER_S = 1000
MS_PER_MINUTE = 60 * MS_PER_S
MS_PER_HOUR = 60 * MS_PER_MINUTE


class TimedWord(Protocol):
    """A word with the marks beside it, and when it is said."""

    @property
    def text(self) -> str: ...

    @property
    def start_s(self) -> float: ...

    @property
    def end_s(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Segment:
    """Text that is said from `start_s` to `end_s`."""

    text: str
    start_s: float
    end_s: float


def segment_words(text: str, words: Sequence[TimedWord]) -> Iterator[Segment]:
    """Segments of a text by its words: sentences, and parts of long ones.

    text: the words and what is between them, which the segments keep.
    """
    spoken = _Spoken(text, words)
    for first, end in spoken.sentences():
        for part_first, part_end in spoken.parts(first, end):
            yield Segment(
                spoken.text(part_first, part_end),
                words[part_first].start_s,
                words[part_end - 1].end_s,
            )


class _Spoken:
    """Words and where they are in their text. Ranges of words are [first, end)."""

    def __init__(self, text: str, words: Sequence[TimedWord]) -> None:
        self._text = text
        self._words = words
        self._ends: list[int] = []  # of each word
        at = 0
        for word in words:
            found = text.find(word.text, at)
            at = (found if found >= 0 else at) + len(word.text)
            self._ends.append(at)

    def text(self, first: int, end: int) -> str:
        start = self._ends[first - 1] if first else 0
        stop = self._ends[end - 1] if end < len(self._words) else None
        return self._text[start:stop].strip()

    def sentences(self) -> Iterator[tuple[int, int]]:
        """What is said without a long pause, up to the end of a sentence."""
        first = 0
        for end, (word, following) in enumerate(pairwise(self._words), 1):
            is_pause = following.start_s - word.end_s >= PAUSE_S
            if is_pause or SENTENCE_END.search(word.text):
                yield first, end
                first = end
        if self._words:
            yield first, len(self._words)

    def parts(self, first: int, end: int) -> list[tuple[int, int]]:
        """A sentence in parts that can be read; the last takes words from the one before it rather
        than to stand there with one alone."""
        parts: list[tuple[int, int]] = []
        for number in range(first + 1, end):
            is_clause = CLAUSE_END.search(self._words[number - 1].text) is not None
            ends_well = is_clause and len(self.text(first, number)) >= CLAUSE_CHARACTERS
            if ends_well or not self._fits(first, number + 1):
                parts.append((first, number))
                first = number
        parts.append((first, end))
        if len(parts) > 1 and len(self.text(*parts[-1])) < SHORT_CHARACTERS:
            parts[-2:] = self._balanced(parts[-2][0], parts[-2][1], end)
        return parts

    def _balanced(self, first: int, middle: int, end: int) -> list[tuple[int, int]]:
        """Two parts as one, or cut where they are as long as each other."""
        if self._fits(first, end):
            return [(first, end)]
        cuts = [
            cut for cut in range(first + 1, end) if self._fits(first, cut) and self._fits(cut, end)
        ]
        cut = min(
            cuts,
            key=lambda cut: abs(len(self.text(first, cut)) - len(self.text(cut, end))),
            default=middle,
        )
        return [(first, cut), (cut, end)]

    def _fits(self, first: int, end: int) -> bool:
        lasts_s = self._words[end - 1].end_s - self._words[first].start_s
        return lasts_s <= LONGEST_S and len(self.text(first, end)) <= LONGEST_CHARACTERS


def write_srt(segments: Iterable[Segment]) -> Iterator[str]:
    """One cue at a time."""
    for number, segment in enumerate(segments, 1):
        times = f"{_clock(segment.start_s, ',')} --> {_clock(segment.end_s, ',')}"
        yield f"{number}\n{times}\n{_lines(segment.text)}\n\n"


def write_vtt(segments: Iterable[Segment]) -> Iterator[str]:
    """The head, and one cue at a time."""
    yield "WEBVTT\n\n"
    for segment in segments:
        times = f"{_clock(segment.start_s, '.')} --> {_clock(segment.end_s, '.')}"
        escaped = segment.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        yield f"{times}\n{_lines(escaped)}\n\n"


def _lines(text: str) -> str:
    """An empty line would end the cue."""
    return " ".join(text.split())


def _clock(at_s: float, mark: str) -> str:
    ms = max(0, round(at_s * MS_PER_S))
    hours, ms = divmod(ms, MS_PER_HOUR)
    minutes, ms = divmod(ms, MS_PER_MINUTE)
    seconds, ms = divmod(ms, MS_PER_S)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}{mark}{ms:03d}"
