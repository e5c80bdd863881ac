"""Calls that wait for the client's output. A call without one never blocks anything."""

from __future__ import annotations


class Tools:
    """Calls by id. Each is answered at most once."""

    __slots__ = ("_answered", "_pending")

    def __init__(self) -> None:
        self._pending: set[str] = set()
        self._answered: set[str] = set()

    @property
    def is_waiting(self) -> bool:
        return bool(self._pending)

    def expect(self, call_id: str) -> None:
        self._pending.add(call_id)

    def is_answered(self, call_id: str) -> bool:
        return call_id in self._answered

    def answer(self, call_id: str) -> None:
        self._pending.discard(call_id)
        self._answered.add(call_id)

    def unanswer(self, call_id: str) -> None:
        """The output was deleted; another may be given."""
        self._answered.discard(call_id)

    def give_up(self, call_id: str) -> None:
        """Wait no longer; an output may still come and counts."""
        self._pending.discard(call_id)

    def forget(self) -> None:
        self._pending.clear()
