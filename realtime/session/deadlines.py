"""The machine's deadlines: what must happen when nothing else does."""

from __future__ import annotations

from enum import IntEnum


class Due(IntEnum):
    """What a deadline is for. Deadlines of one instant fire in this order."""

    AUDIO_GAP = 0
    TRANSCRIPT = 1
    HOLD = 2
    FIRST_OUTPUT = 3
    STARVED = 4
    PLAYBACK_END = 5
    IDLE = 6
    DRAIN = 7
    RESUME = 8
    TOOL = 9
    SESSION_END = 10


class Deadlines:
    """At most one deadline per (purpose, subject)."""

    __slots__ = ("_at_ms",)

    def __init__(self) -> None:
        self._at_ms: dict[tuple[Due, str], float] = {}

    def arm(self, due: Due, at_ms: float, subject: str = "") -> None:
        self._at_ms[due, subject] = at_ms

    def disarm(self, due: Due, subject: str = "") -> None:
        self._at_ms.pop((due, subject), None)

    def armed(self, due: Due, subject: str = "") -> bool:
        return (due, subject) in self._at_ms

    def next_ms(self) -> float | None:
        return min(self._at_ms.values(), default=None)

    def take(self, now_ms: float) -> tuple[Due, str] | None:
        """Remove and return the earliest deadline that has come, or None."""
        ripe = min(((at, key) for key, at in self._at_ms.items() if at <= now_ms), default=None)
        if ripe is None:
            return None
        del self._at_ms[ripe[1]]
        return ripe[1]

    def clear(self, keep: Due | None = None) -> None:
        """Disarm all deadlines but those of the purpose `keep`."""
        self._at_ms = {key: at for key, at in self._at_ms.items() if key[0] is keep}
