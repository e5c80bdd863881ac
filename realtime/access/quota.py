"""How many sessions each key holds at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class QuotaSpent(Exception):
    """The key has as many sessions as it may. The text is for the user."""


class SessionQuota:
    """`limit` sessions of each key; None: no limit. Sessions without a key are not counted."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._held: Counter[int] = Counter()

    def count(self, key: int) -> int:
        return self._held[key]

    @contextmanager
    def hold(self, key: int | None) -> Iterator[None]:
        """One session, as long as the block runs. Raises QuotaSpent before it begins."""
        if key is None or self._limit is None:
            yield
            return
        if self._held[key] >= self._limit:
            raise QuotaSpent(
                f"All {self._limit} sessions of this key are in use. End one, or ask the server's "
                "operator to raise limits.sessions_per_key."
            )
        self._held[key] += 1
        try:
            yield
        finally:
            self._held[key] -= 1
