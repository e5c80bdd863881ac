"""The way of a request's outputs from whatever makes them to the loop that reads them."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from pipelines.runtime.failures import stage_timeout
from pipelines.runtime.handover import hand_over
from pipelines.runtime.lead import Lead
from pipelines.runtime.ticket import Ticket
from pipelines.types import StageError

Out = TypeVar("Out")

Late = Callable[[str, float], StageError]  # of a stage, and of the seconds without an output

STALL_TIMEOUT_MS = 30_000  # far beyond any honest step, well within a caller's patience
RUSHED_LIMIT = 16_384  # outputs: more than `Lead.most_s` of any voice, also where some are silent


class Outlet(Generic[Out]):
    """A bounded queue of outputs with one reader, on the event loop that made the outlet.

    Producers may be threads: they call `put`, `owe` and `end`. After the ticket's abort nothing is
    delivered. While the stage owes an output, a reader who waited `stall_timeout_ms` without one
    gets an error, and the request ends; a reader who is elsewhere misses nothing.

    limit: outputs that may wait. lead: seconds of audio that may wait, beside that.
    """

    def __init__(
        self,
        stage: str,
        ticket: Ticket,
        limit: int,
        on_room: Callable[[], None],
        stall_timeout_ms: int = STALL_TIMEOUT_MS,
        lead: Lead[Out] | None = None,
    ) -> None:
        self.ticket = ticket
        self._stage = stage
        self._limit = limit
        self._on_room = on_room  # called without locks whenever a full queue gets room
        self._lead = lead
        self._limit_s = math.inf if lead is None else lead.limit_s
        self._resume_s = math.inf if lead is None else lead.resume_s
        self._most_s = 0.0 if lead is None else lead.most_s
        self._stall_s = stall_timeout_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._lock = threading.Lock()
        self._outputs: deque[tuple[Out, float]] = deque()  # each with its seconds
        self._unread_s = 0.0
        self._is_full = False
        self._ended = False
        self._error: StageError | None = None
        self._owed_since_s: float | None = None
        self._late: Late = stage_timeout
        self._changed = asyncio.Event()
        ticket.on_abort(self._on_abort)

    @property
    def has_room(self) -> bool:
        """Whether more should come. A queue that was full has room again once it is well below."""
        with self._lock:
            return not self._is_full

    @property
    def may_rush(self) -> bool:
        """Whether a stream that has enough may make more all the same, so that it ends sooner."""
        with self._lock:
            return self._unread_s < self._most_s and len(self._outputs) < RUSHED_LIMIT

    @property
    def unread_s(self) -> float:
        """Seconds of audio that wait for the reader."""
        with self._lock:
            return self._unread_s

    def has_room_for(self, output: Out) -> bool:
        """The same, where an output without length need not wait for others to be heard."""
        weighs = self.weigh(output) > 0
        with self._lock:
            return not self._is_full if weighs else len(self._outputs) < self._limit

    def weigh(self, output: Out) -> float:
        """Its length in seconds; 0 where outputs have none."""
        return 0.0 if self._lead is None else self._lead.weigh(output)

    def put(self, output: Out) -> None:
        """Hand over an output; the caller has seen that there is room."""
        seconds = self.weigh(output)
        with self._lock:
            if self._ended or self.ticket.aborted:
                return
            self._outputs.append((output, seconds))
            self._unread_s += seconds
            is_enough = len(self._outputs) >= self._limit or self._unread_s >= self._limit_s
            self._is_full = self._is_full or is_enough
            if self._owed_since_s is not None:
                self._owed_since_s = self._loop.time()
        self._notify()

    def owe(self, owes: bool, late: Late = stage_timeout) -> None:
        """Say whether the stage has something to do for this request; starts the stall clock.

        late: the error of one that is owed something for too long.
        """
        with self._lock:
            self._late = late
            if owes and self._owed_since_s is None:
                self._owed_since_s = self._loop.time()
            elif not owes:
                self._owed_since_s = None
        self._notify()

    def end(self, error: StageError | None = None) -> None:
        """Nothing more comes; what was put is still delivered, then `error` is raised."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._error = error
        self._notify()

    async def next(self) -> Out:
        """The next output. Raises StopAsyncIteration at the end or abort, StageError on failure."""
        reading_since_s = self._loop.time()
        while True:
            with self._lock:
                if self.ticket.aborted:
                    raise StopAsyncIteration
                if self._outputs:
                    was_full, had_most = self._is_full, len(self._outputs) >= self._limit
                    output = self._take()
                    has_got_room = was_full and (had_most or not self._is_full)
                    break
                if self._ended:
                    if self._error is not None:
                        raise self._error
                    raise StopAsyncIteration
                self._changed.clear()
                owed_since_s = self._owed_since_s
            await self._wait(owed_since_s, reading_since_s)
        if has_got_room:
            self._on_room()
        return output

    def _take(self) -> Out:
        output, seconds = self._outputs.popleft()
        # Sums of floats drift: an empty queue holds nothing.
        self._unread_s = self._unread_s - seconds if self._outputs else 0.0
        if self._is_full:
            self._is_full = len(self._outputs) >= self._limit or self._unread_s > self._resume_s
        return output

    async def _wait(self, owed_since_s: float | None, reading_since_s: float) -> None:
        deadline_s = None
        if owed_since_s is not None:
            # While nobody read, the stage may have been paused, and nobody missed an output.
            deadline_s = max(owed_since_s, reading_since_s) + self._stall_s
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._changed.wait()
        except TimeoutError:
            with self._lock:
                late = not self._outputs and not self._ended and not self.ticket.aborted
                late = late and self._owed_since_s == owed_since_s
                error = self._late(self._stage, self._stall_s)
            if not late:
                return
            self.ticket.abort()
            raise error from None

    def _on_abort(self) -> None:
        with self._lock:
            self._outputs.clear()
            self._unread_s = 0.0
        self._notify()

    def _notify(self) -> None:
        if threading.get_ident() == self._loop_thread:
            self._changed.set()  # without the system call that wakes a loop from outside
            return
        if not hand_over(self._loop, self._changed.set):
            # The loop is closed: nobody will ever read, so the work behind may end.
            self.ticket.abort()
