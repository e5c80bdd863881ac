"""Whole characters out of text that was cut, or damaged, in the middle of one.

JSON can name half of a character (`"\\ud83d"`), and some servers put the halves of one into two
events. Python keeps such a half in a string that nothing can encode any more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HALF = re.compile("[\ud800-\udfff]")  # either half of a UTF-16 pair (RFC 2781, 2.1)


@dataclass(slots=True)
class CharacterJoiner:
    """Joins the pieces of one text. A half without its other half becomes U+FFFD."""

    _first_half: str = ""

    def feed(self, piece: str) -> str:
        """The whole characters of this piece; a first half at its end waits for the next one."""
        text = self._first_half + piece
        self._first_half = ""
        if _HALF.search(text) is None:
            return text
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._first_half = text[:-1], text[-1]
        return whole_characters(text)


def whole_characters(text: str) -> str:
    """Text that can be encoded: pairs of halves are joined, lone halves become U+FFFD."""
    if _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
