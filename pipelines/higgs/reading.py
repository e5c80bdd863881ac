"""The text of one reply, as it is pushed, in lines that are each spoken as one chunk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.higgs.direction import ActiveTags, direct
from pipelines.higgs.member import Member
from pipelines.higgs.script import Script
from pipelines.higgs.sequence import TextChunk
from pipelines.higgs.tags import CONTROL_TAG
from pipelines.higgs.vocabulary import CONTROL_TAGS
from pipelines.higgs.watchdog import row_limit

# A chunk is spoken in one breath: some twenty seconds, of the 82 that the model can do at once.
CHUNK_CHARS = 300

# Where a speaker pauses, the longest pauses first.
_CUTS = tuple(
    re.compile(shape, re.DOTALL) for shape in (r".*[.!?。！？…]\s*", r".*[,;:、，；：]\s*", r".*\s")
)

_SPEEDS = tuple(name for name, tag in CONTROL_TAGS.items() if tag.name.startswith("speed_"))


@dataclass(frozen=True, slots=True)
class Line:
    """What is spoken as one chunk, and of which text. chunk: None, if there is nothing to say."""

    text: str
    chunk: TextChunk | None


class Reading:
    """One reply. tag: of a speed, at the start of every chunk that has none of its own."""

    def __init__(self, script: Script, member: Member, tag: str = "") -> None:
        self._script = script
        self._member = member
        self._tag = tag if tag in member.abilities.controls else ""
        self._active = ActiveTags()

    def lines(self, text: str) -> Iterator[Line]:
        """The text that was pushed, in lines; joined they are the text."""
        controls = self._member.abilities.controls
        for piece in pieces(text, CHUNK_CHARS):
            obeyed = CONTROL_TAG.sub(lambda tag: tag[0] if tag[0] in controls else " ", piece)
            directed = direct(obeyed, self._active)
            self._active = directed.active
            if not directed.text:
                yield Line(piece, None)
                continue
            has_own = any(tag in directed.text for tag in _SPEEDS)
            said = directed.text if has_own else self._tag + directed.text
            rows = min(row_limit(said), self._member.row_limit)
            yield Line(piece, TextChunk(self._script.chunk(said), rows, self._script.closing))


def pieces(text: str, most_chars: int) -> Iterator[str]:
    """Text in pieces of at most `most_chars`, cut where a speaker would pause, if there is such."""
    begin = 0
    while len(text) - begin > most_chars:
        window = text[begin : begin + most_chars]
        ends = (match.end() for shape in _CUTS if (match := shape.match(window)))
        # A cut in the first third would leave a scrap.
        end = next((end for end in ends if end >= most_chars // 3), most_chars)
        yield window[:end]
        begin += end
    if begin < len(text):
        yield text[begin:]


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
