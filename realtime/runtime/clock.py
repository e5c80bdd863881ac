"""The session's clock, as a port: real time in the server, audio time in a simulation."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> float:
        """Monotone; the zero is arbitrary."""
        ...

    async def wait(self, event: asyncio.Event, until_ms: float | None) -> None:
        """Return when `event` is set or `until_ms` has come, which sets `event` too.

        Suspends at least once, so that no loop of waits can keep the others from running.
        """
        ...


class LoopClock:
    """The event loop's own time, of the loop that first asks."""

    def __init__(self) -> None:
        self._time_s: Callable[[], float] | None = None

    def now_ms(self) -> float:
        if self._time_s is None:
            self._time_s = asyncio.get_running_loop().time
        return self._time_s() * 1000.0

    async def wait(self, event: asyncio.Event, until_ms: float | None) -> None:
        if event.is_set():
            await asyncio.sleep(0)
        elif until_ms is None:
            await event.wait()
        else:
            # Some loops count whole milliseconds: a fraction would wake them early and often.
            due_s = math.ceil(until_ms) / 1000.0
            alarm = asyncio.get_running_loop().call_at(due_s, event.set)
            try:
                await event.wait()
            finally:
                alarm.cancel()


class ManualClock:
    """Time that stands still until somebody moves it."""

    def __init__(self, start_ms: float = 0.0) -> None:
        self._now_ms = start_ms
        self._alarms: dict[asyncio.Event, float] = {}

    def now_ms(self) -> float:
        return self._now_ms

    def advance(self, by_ms: float) -> None:
        """Move on. Whoever waits for a moment that has now come is woken, not yet run."""
        self._now_ms += by_ms
        for event, until_ms in self._alarms.items():
            if until_ms <= self._now_ms:
                event.set()

    async def wait(self, event: asyncio.Event, until_ms: float | None) -> None:
        if until_ms is not None:
            if until_ms <= self._now_ms:
                event.set()
            self._alarms[event] = until_ms
        try:
            await asyncio.sleep(0)
            await event.wait()
        finally:
            self._alarms.pop(event, None)
