"""How long a spoken reply may become: small models are asked to be brief, and are not always."""

from __future__ import annotations

import re

ENOUGH_WORDS = 45  # a quarter of a minute; a person would have stopped to let the other speak

# A mark behind a word, not behind the number of a list; or the end of a line.
_SENTENCE_END = re.compile(r"(?<=[^\W\d]{2})[.!?][\"')\]]*(?=\s)|(?<=\S)(?=\n)")


class SpokenLength:
    """Lets text pass up to the first sentence end at which enough has been said."""

    def __init__(self, enough_words: int = ENOUGH_WORDS) -> None:
        self._enough_words = enough_words
        self._text = ""
        self.is_enough = False

    def cut(self, text: str) -> str:
        """The part of the next piece of text that is still said."""
        if self.is_enough:
            return ""
        begin = len(self._text)
        self._text += text
        # The mark may have come with the piece before, and the space that shows its sense now.
        for end in (match.end() for match in _SENTENCE_END.finditer(self._text)):
            if end >= begin - 1 and len(self._text[:end].split()) >= self._enough_words:
                self.is_enough = True
                return self._text[begin:end]
        return text
