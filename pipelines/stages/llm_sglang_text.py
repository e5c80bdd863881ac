"""From the ids of tokens to text, as they come: no character is split, none is told twice.

A token may end inside a character, and what one token means may depend on the one before it. So the
newest tokens are decoded together with the last ones that were told, and of that text only what is
new and whole is passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

UNFINISHED = "\N{REPLACEMENT CHARACTER}"  # what decoders write for bytes that are no character
UNFINISHED_MOST_CHARS = 3  # the bytes that a character of four may lack; more of them are garbage
MOST_TOKENS = 64  # decoded at once: bounds the work on a model that writes nothing but garbage


class TextStream:
    """Decodes one reply. decode: ids of tokens to text, by the model's tokenizer."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._ids: list[int] = []  # those told last, and those whose text is not whole yet
        self._told_ids = 0  # of these
        self._told_chars = 0  # of the text of these

    def feed(self, ids: Sequence[int]) -> str:
        """The text that is whole once these ids have come."""
        self._ids += ids
        text = self._decode(self._ids)
        held_chars = min(len(text) - len(text.rstrip(UNFINISHED)), UNFINISHED_MOST_CHARS)
        whole = text[: len(text) - held_chars]
        new = whole[self._told_chars :]
        self._told_chars = max(self._told_chars, len(whole))
        if not held_chars and new:
            # The next tokens are decoded behind these alone: they begin with a whole character.
            self._forget(self._told_ids)
            self._told_ids = len(self._ids)
        elif len(self._ids) > MOST_TOKENS:
            self._forget(len(self._ids) - MOST_TOKENS // 2)
            self._told_ids = 0
            self._told_chars -= held_chars
        return new

    def _forget(self, count: int) -> None:
        del self._ids[:count]
        self._told_chars = len(self._decode(self._ids))
