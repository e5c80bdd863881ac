"""The requests and sockets of speech that are being served, and how they end when the server does.

At a stop they may be finished for a while; then what still runs is interrupted, and has a moment to
tell its client so in its own form.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager

log = logging.getLogger(__name__)

LAST_WORD_S = 1.0  # for a client to take the last message, after which it may be cut off
CLEAR_UP_S = 3.0  # beyond that: for threads that cannot be interrupted to come to a point


class TimeIsUp(Exception):
    """Of a wait that was limited."""


class Visit:
    """One of them. stopping: nothing new is begun for it. over: it is to end now."""

    def __init__(self, stopping: asyncio.Event, over: asyncio.Event) -> None:
        self.stopping = stopping
        self.over = over
        self._limits: dict[asyncio.Timeout, float] = {}

    @asynccontextmanager
    async def limit(self, usual_s: float | None, last_s: float) -> AsyncIterator[None]:
        """Raises TimeIsUp after `usual_s`, or once the visit has been over for `last_s`.

        May be nested, and used by several tasks at once.
        """
        if self.over.is_set():
            usual_s = last_s if usual_s is None else min(usual_s, last_s)
        limit = asyncio.timeout(usual_s)
        try:
            async with limit:
                self._limits[limit] = last_s
                yield
        except TimeoutError:
            if limit.expired():
                raise TimeIsUp from None
            raise
        finally:
            self._limits.pop(limit, None)

    def end(self) -> None:
        """Interrupt what is waited for. `over` has been set."""
        now_s = asyncio.get_running_loop().time()
        for limit, last_s in self._limits.items():
            due_s = limit.when()
            if not limit.expired():
                limit.reschedule(now_s + last_s if due_s is None else min(due_s, now_s + last_s))


class Visits:
    """All of one server."""

    def __init__(self) -> None:
        self._open: set[Visit] = set()
        self._stopping = asyncio.Event()
        self._over = asyncio.Event()
        self._changed = asyncio.Event()

    @property
    def count(self) -> int:
        return len(self._open)

    @contextmanager
    def enter(self) -> Generator[Visit]:
        visit = Visit(self._stopping, self._over)
        self._open.add(visit)
        try:
            yield visit
        finally:
            self._open.discard(visit)
            self._changed.set()

    async def drain(self, timeout_s: float) -> None:
        """Let them finish, then end what is left. Whoever admits them refuses new ones by now."""
        self._stopping.set()
        await self._until_empty(timeout_s, until_over=True)
        self.hurry()
        await self._until_empty(LAST_WORD_S + CLEAR_UP_S)
        if self._open:
            log.warning("%d audio requests did not end in time and are cut off", len(self._open))

    def hurry(self) -> None:
        """Nobody is waited for any longer."""
        self._over.set()
        for visit in self._open:
            visit.end()
        self._changed.set()

    async def _until_empty(self, timeout_s: float, *, until_over: bool = False) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while self._open and not (until_over and self._over.is_set()):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return
