"""The live sessions of one server: how many, how many more, and how they end together."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from pipelines.ports import Capacity
from realtime.observe.metrics import Count, Metrics
from realtime.runtime.headroom import NEW_S, Headroom
from realtime.runtime.parking import Parking
from realtime.runtime.refusals import RefusalLog, ServerFull, StageUnavailable
from realtime.runtime.session import SessionRuntime

log = logging.getLogger(__name__)

_FAREWELL_WAIT_S = 1.0  # for the last events and the close of sessions whose time is over
_CANCEL_WAIT_S = 10.0  # for the cleanup of sessions that had to be ended by force


class Registry:
    """`limit`: how many sessions may live at once, parked ones included.

    parking: the tokens with which lost clients come back to them. capacity: of the stages, as far
    as it was measured. failure: why no conversation is possible at present, for the user. now_s:
    monotone.
    """

    def __init__(
        self,
        limit: int,
        metrics: Metrics,
        capacity: Callable[[], Capacity | None] = lambda: None,
        now_s: Callable[[], float] = time.monotonic,
        failure: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._failure = failure
        self._limit = limit
        self._capacity = capacity
        self._headroom = Headroom()
        self._now_s = now_s
        self._began_s: dict[SessionRuntime, float] = {}
        self._metrics = metrics
        self._sessions: dict[SessionRuntime, asyncio.Task[object] | None] = {}
        self._is_draining = False
        self.parking = Parking()
        self._changed = asyncio.Event()
        self._refusals = RefusalLog(now_s)

    @property
    def count(self) -> int:
        return len(self._sessions)

    @property
    def parked(self) -> int:
        """Those of them whose client is lost, and awaited."""
        return sum(session.is_parked for session in self._sessions)

    @property
    def limit(self) -> int:
        return self._limit

    @property
    def open_requests(self) -> int:
        return sum(session.open_requests for session in self._sessions)

    def check_room(self) -> None:
        """Raises ServerFull. May be asked before a connection is accepted."""
        refusal = self._refusal()
        if refusal is not None:
            raise self.refuse(refusal)

    def refuse(self, refusal: ServerFull) -> ServerFull:
        """Count a refusal and tell the log of it; the same comes back, to be raised."""
        self._metrics.add(Count.SESSIONS_REFUSED, labels=(refusal.code,))
        self._refusals.tell(refusal.code, str(refusal))
        return refusal

    def _refusal(self) -> ServerFull | None:
        if self._is_draining:
            return ServerFull("The server is shutting down. Connect again in a moment.")
        failure = self._failure()
        if failure is not None:
            return StageUnavailable(failure)
        if len(self._sessions) >= self._limit:
            return ServerFull(
                f"All {self._limit} sessions of this server are in use. Try again later, or raise "
                "the limit in its configuration."
            )
        since_s = self._now_s() - NEW_S
        new = sum(began_s > since_s for began_s in self._began_s.values())
        capacity = self._capacity()
        if capacity is not None and not self._headroom.has_room(capacity, self.count, new):
            return ServerFull(
                "The voice of this server has as many listeners as it can serve in real time, "
                f"about {_count(capacity.streams)}. Try again in a moment, or give it a faster "
                "device."
            )
        return None

    async def host(self, session: SessionRuntime) -> None:
        """Run one session in the calling task. Raises ServerFull before it begins.

        The task lasts as long as the session, however often its client is lost meanwhile.
        """
        self.check_room()
        self._sessions[session] = asyncio.current_task()
        self._began_s[session] = self._now_s()
        try:
            await session.run()
        finally:
            del self._sessions[session], self._began_s[session]
            self._changed.set()

    async def drain(self, timeout_s: float) -> None:
        """Refuse new sessions, let the others finish their sentence, then end what is left."""
        self._is_draining = True
        for session in list(self._sessions):
            session.shut_down(timeout_s * 1000)
        await self._until_empty(timeout_s + _FAREWELL_WAIT_S)
        if self._sessions:
            log.warning("%d sessions did not end in time and are cut off", len(self._sessions))
            for task in list(self._sessions.values()):
                if task is not None:
                    task.cancel()
            await self._until_empty(_CANCEL_WAIT_S)

    def hurry(self) -> None:
        """Nobody finishes a sentence any more: whoever is cut short is told so."""
        for session in list(self._sessions):
            session.shut_down(0)

    async def _until_empty(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while self._sessions:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return


def _count(listeners: float) -> str:
    return f"{listeners:.0f}" if listeners >= 1 else f"{listeners:.1f}"
