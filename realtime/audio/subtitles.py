"""Transcripts with times: the segments that are read at once, and subtitles in two formats.

SRT: the format of SubRip. VTT: W3C WebVTT. Both hold text and times alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

LONGEST_S = 7.0  # of one subtitle: what stays longer is taken for the next one
LONGEST_CHARACTERS = 84  # two lines of 42, as broadcasters have it
PAUSE_S = 0.7  # between words, ends a segment
SENTENCE_END = re.compile(r"""[.!?…。！？]["'”’)\]]*$""")
CLAUSE_END = re.compile(r"""[,;:，、；：]["'”’)\]]*$""")
CLAUSE_CHARACTERS = 42  # from a line on, a segment may end with a clause
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
    first = 0  # of the words of a segment
    start = end = 0  # in the text
    for number, word in enumerate(words):
        found = text.find(word.text, end)
        end = (found if found >= 0 else end) + len(word.text)
        following = words[number + 1] if number + 1 < len(words) else None
        so_far = text[start:end].strip()
        if following is None or _ends(so_far, words[first], word, following):
            last = text[start:].strip() if following is None else so_far
            yield Segment(last, words[first].start_s, word.end_s)
            first, start = number + 1, end


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


def _ends(so_far: str, first: TimedWord, last: TimedWord, following: TimedWord) -> bool:
    if SENTENCE_END.search(last.text) or following.start_s - last.end_s >= PAUSE_S:
        return True
    if CLAUSE_END.search(last.text) and len(so_far) >= CLAUSE_CHARACTERS:
        return True
    is_full = len(so_far) + 1 + len(following.text) > LONGEST_CHARACTERS
    return is_full or following.end_s - first.start_s > LONGEST_S


def _lines(text: str) -> str:
    """An empty line would end the cue."""
    return " ".join(text.split())


def _clock(at_s: float, mark: str) -> str:
    ms = max(0, round(at_s * MS_PER_S))
    hours, ms = divmod(ms, MS_PER_HOUR)
    minutes, ms = divmod(ms, MS_PER_MINUTE)
    seconds, ms = divmod(ms, MS_PER_S)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}{mark}{ms:03d}"
