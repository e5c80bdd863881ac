"""How tests wait: for conditions, in bounded time, without sleeping."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

from hypothesis import HealthCheck, settings

WAIT_S = 10.0
TEST_S = 60.0

# A busy machine makes examples slow, which says nothing about the code.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until the condition holds, which a thread may bring about."""
    async with asyncio.timeout(WAIT_S):
        for _ in itertools.count():
            if condition():
                return
            await asyncio.sleep(0)


def check(main: Callable[[], Awaitable[None]]) -> None:
    """Run an async test in real time, with a deadline."""

    async def bounded() -> None:
        async with asyncio.timeout(TEST_S):
            await main()

    asyncio.run(bounded())
