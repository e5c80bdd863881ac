"""The audio of a turn under way, in pieces, while it is being heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from pipelines.types import HEARING_RATE_HZ, Samples

# A recogniser gains nothing from smaller pieces: what it tells comes every half second.
_PIECE_SAMPLES = HEARING_RATE_HZ * 128 // 1000


class TurnAudio:
    """Positions are samples at 16 kHz.

    read: [start, end) of the turn, as far as it has been heard. position: the present.
    """

    def __init__(
        self,
        read: Callable[[int, int], Samples],
        position: Callable[[], int],
        start: int,
    ) -> None:
        self._read = read
        self._position = position
        self._next = start
        self._end: int | None = None
        self._changed = asyncio.Event()

    def notice(self) -> None:
        """More has been heard."""
        if self._end is None and self._position() - self._next >= _PIECE_SAMPLES:
            self._changed.set()

    def finish(self, end: int) -> None:
        """The turn's audio ends here, in the past or at the present."""
        self._end = end
        self._changed.set()

    @property
    def is_finished(self) -> bool:
        return self._end is not None

    async def pieces(self) -> AsyncIterator[Samples]:
        """float32 [n] at 16 kHz, until `finish`. What is read joins without a gap."""
        while True:
            end = self._position() if self._end is None else self._end
            if end - self._next >= (_PIECE_SAMPLES if self._end is None else 1):
                start, self._next = self._next, end
                yield self._read(start, end)
            elif self._end is not None:
                return
            else:
                self._changed.clear()
                await self._changed.wait()
