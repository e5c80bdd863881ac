"""The clock of the scripted stages."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Clock(Protocol):
    @property
    def now_ms(self) -> float: ...

    async def sleep_until(self, at_ms: float) -> None: ...


class LoopClock:
    """The running loop's own time: real under `asyncio.run`, virtual under `run_virtual`."""

    @property
    def now_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000

    async def sleep_until(self, at_ms: float) -> None:
        """Also yields once when the time has passed, so that a script never hogs the loop."""
        await asyncio.sleep(max(0.0, (at_ms - self.now_ms) / 1000))


async def sleep_after(clock: Clock, duration_ms: float) -> None:
    await clock.sleep_until(clock.now_ms + duration_ms)
