"""The text of one reply, as it is pushed, in lines that are each spoken as one chunk."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipelines.higgs.member import Member
from pipelines.higgs.reply.chunk import TextChunk
from pipelines.higgs.reply.watchdog import row_limit
from pipelines.higgs.text.direction import ActiveTags, direct
from pipelines.higgs.text.script import Script
from pipelines.higgs.text.tags import CONTROL_TAG
from pipelines.higgs.text.vocabulary import CONTROL_TAGS

# A chunk is spoken in one breath: some twenty seconds, of the 82 that the model can do at once.
CHUNK_CHARS = 300
LEAST_CHARS = 8  # shorter lines are spoken as they are, whatever room there is
WIDE_CHARS = 4

# Where a speaker pauses, the longest pauses first. Marks of scripts without spaces need none behind
# them; others stand within numbers and tags too.
_CUTS = tuple(
    re.compile(shape, re.DOTALL)
    for shape in (r".*(?:[.!?…]\s|[。！？])\s*", r".*(?:[,;:]\s|[、，；：])\s*", r".*\s")
)


@dataclass(frozen=True, slots=True)
class Line:
    """What is spoken as one chunk, and of which text. chunk: None, if there is nothing to say."""

    text: str
    chunk: TextChunk | None


class Reading:
    """One reply. tag: the control tag of a speed, for sentences that have none of their own."""

    def __init__(self, script: Script, member: Member, tag: str = "") -> None:
        self._script = script
        self._member = member
        self._default = CONTROL_TAGS.get(tag) if tag in member.abilities.controls else None
        self._active = ActiveTags()

    def lines(self, text: str, fits: Callable[[TextChunk], bool]) -> Iterator[Line]:
        """The text that was pushed, in lines; joined they are the text.

        fits: whether a slot has room for a chunk; what has too little is cut further.
        """
        return self._cut(text, CHUNK_CHARS, fits)

    def _cut(self, text: str, most_chars: int, fits: Callable[[TextChunk], bool]) -> Iterator[Line]:
        for piece in pieces(text, most_chars):
            before = self._active
            line = self._line(piece)
            if line.chunk is None or most_chars <= LEAST_CHARS or fits(line.chunk):
                yield line
                continue
            self._active = before
            yield from self._cut(piece, most_chars // 2, fits)

    def _line(self, text: str) -> Line:
        controls = self._member.abilities.controls
        obeyed = CONTROL_TAG.sub(lambda tag: tag[0] if tag[0] in controls else " ", text)
        directed = direct(obeyed, self._active, self._default)
        self._active = directed.active
        if not directed.text:
            return Line(text, None)
        rows = min(row_limit(directed.text), self._member.row_limit)
        return Line(text, TextChunk(self._script.chunk(directed.text), rows, self._script.closing))


def pieces(text: str, most_chars: int) -> Iterator[str]:
    """Text in pieces of at most `most_chars`, cut where a speaker would pause, if there is such.

    Characters of scripts without spaces are syllables: they count WIDE_CHARS times. No control tag
    is cut.
    """
    begin = 0
    while begin < len(text):
        end = _window_end(text, begin, most_chars)
        if end < len(text):
            window = text[begin:end]
            ends = (match.end() for shape in _CUTS if (match := shape.match(window)))
            # A cut in the first third would leave a scrap.
            cut = next((cut for cut in ends if cut >= len(window) // 3), len(window))
            end = _outside_tags(text, begin + cut, begin)
        yield text[begin:end]
        begin = end


def _window_end(text: str, begin: int, most_chars: int) -> int:
    room = most_chars
    for place in range(begin, len(text)):
        room -= WIDE_CHARS if unicodedata.east_asian_width(text[place]) in "WF" else 1
        if room < 0:
            return max(place, begin + 1)
    return len(text)


def _outside_tags(text: str, cut: int, begin: int) -> int:
    """The cut, or the start of the control tag that it would halve."""
    for tag in CONTROL_TAG.finditer(text, begin):
        if tag.start() >= cut:
            break
        if cut < tag.end():
            return tag.start() if tag.start() > begin else tag.end()
    return cut


def speed_tag(speed: float) -> str:
    """The control tag nearest to a speed of speech; empty within a tenth of the usual one.

    The model knows four: about 0.65, 0.85, 1.2 and 1.4 times its own speed.
    """
    if speed < 0.75:
        return "<|prosody:speed_very_slow|>"
    if speed < 0.92:
        return "<|prosody:speed_slow|>"
    if speed > 1.3:
        return "<|prosody:speed_very_fast|>"
    if speed > 1.1:
        return "<|prosody:speed_fast|>"
    return ""
