"""Ids from a seed, so that a replay of the same events names everything alike."""

from __future__ import annotations

from random import Random

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LENGTH_CHARS = 20  # 62**20 ids: no two sessions of a lifetime meet


class Identifiers:
    """Opaque ids with the prefixes of the wire. The seed must be unpredictable and unique."""

    __slots__ = ("_random", "_requests")

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._requests = 0

    def make(self, prefix: str) -> str:
        """An id such as item_4fZ...; prefixes are sess, conv, item, resp and call."""
        letters = self._random.choices(_ALPHABET, k=_LENGTH_CHARS)
        return f"{prefix}_{''.join(letters)}"

    def next_request(self, kind: str) -> str:
        """The name of one piece of stage work; unique within the session."""
        self._requests += 1
        return f"{kind}-{self._requests}"
