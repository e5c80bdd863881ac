"""A limit for waits that almost always end at once, many times a second.

`asyncio.timeout` makes a timer for every wait, and the loop keeps each of them until its time has
come: hundreds per session. This keeps one, which is moved only when it goes off.
"""

from __future__ import annotations

import asyncio
import math
from types import TracebackType


class TimeLimit:
    """`with limit:` around awaits of one task, one wait after another.

    Raises TimeoutError in place of what the wait would have ended with. A cancellation from
    elsewhere passes. The waits may not be nested.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._due_s = math.inf
        self._task: asyncio.Task[object] | None = None
        self._cancellations = 0  # of the task, when the wait began
        self._has_expired = False
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(loop)
        if self._task is None:
            raise RuntimeError("a time limit needs a task that it can interrupt")
        self._cancellations = self._task.cancelling()
        self._due_s = loop.time() + self._limit_s
        if self._timer is None:
            self._timer = loop.call_at(self._due_s, self._ring, loop)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        self._due_s = math.inf
        if not self._has_expired or task is None:
            return
        self._has_expired = False
        if task.uncancel() <= self._cancellations and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def close(self) -> None:
        """Drop the timer. No wait may follow."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self._task is None:
            return  # the next wait brings a new one
        if loop.time() < self._due_s:
            self._timer = loop.call_at(self._due_s, self._ring, loop)
            return
        self._has_expired = True
        self._task.cancel()
