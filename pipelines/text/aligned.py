"""Text that remembers which display character each of its own stands for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

INNER = -1  # of a character that covers nothing yet: its expansion goes on


@dataclass(frozen=True, slots=True)
class After:
    """What to say depends on what stands in front of the match, which is given too: the text up to
    it, and the word before the text."""

    say: Callable[[re.Match[str], str], str | None]


Say = str | Callable[[re.Match[str]], str | None] | After
Rule = tuple[re.Pattern[str], Say]


@dataclass(frozen=True, slots=True)
class PlainWord:
    """text: without white space. end: display characters covered once it has been heard, or
    `INNER` if it is not the last word of what it stands for. spaced: white space follows."""

    text: str
    end: int
    spaced: bool


def last_word(ahead: str) -> str:
    """Of what stands in front of something; "" if there is none."""
    return next((word for word in reversed(ahead.split()) if any(map(str.isalnum, word))), "")


@dataclass(slots=True)
class Aligned:
    """`ends[i]` is the display position behind what `text[i]` stands for, or `INNER`.

    before: the word in front of the text, if any.
    """

    text: str
    ends: list[int]
    before: str = ""

    @classmethod
    def at(cls, text: str, start: int, before: str = "") -> Aligned:
        """Display text as it stands, beginning at a display position."""
        return cls(text, list(range(start + 1, start + len(text) + 1)), before)

    def sub(self, pattern: re.Pattern[str], say: Say) -> None:
        """Like `re.sub`; a function may answer None to leave its match alone.

        The last word of a replacement covers the whole match, the words before it nothing. What is
        replaced by nothing goes with what stands before it.
        """
        text: list[str] = []
        ends: list[int] = []
        at = 0
        for found in pattern.finditer(self.text):
            match say:
                case str():
                    said = say
                case After():
                    said = say.say(found, f"{self.before} {self.text[: found.start()]}")
                case _:
                    said = say(found)
            if said is None or found[0] == "":
                continue
            text.append(self.text[at : found.start()])
            ends += self.ends[at : found.start()]
            end = max(self.ends[found.start() : found.end()])
            if said:
                # Words in front that stay as they are keep their own places.
                kept = os.path.commonprefix((said, found[0])).rfind(" ") + 1
                last_word = max(kept, said.rstrip().rfind(" ") + 1)
                text.append(said)
                ends += self.ends[found.start() : found.start() + kept]
                ends += [INNER] * (last_word - kept) + [end] * (len(said) - last_word)
            elif ends and ends[-1] != INNER:
                ends[-1] = max(ends[-1], end)
            at = found.end()
        if at:
            self.text = "".join(text) + self.text[at:]
            self.ends = ends + self.ends[at:]

    def apply(self, rules: tuple[Rule, ...]) -> None:
        for pattern, say in rules:
            self.sub(pattern, say)

    def words(self) -> Iterator[PlainWord]:
        for found in re.finditer(r"\S+", self.text):
            end = max(self.ends[found.start() : found.end()])
            yield PlainWord(found[0], end, found.end() < len(self.text))
