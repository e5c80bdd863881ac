"""An event loop whose time jumps: when nothing is left to do, it is the next timer's turn at once.

An hour of conversation runs in a moment, and exactly alike every time. For code whose timing is
all `asyncio` (sleep, timeout, call_later, `loop.time()`). Calls in executor threads are waited for
in real time before time jumps; other threads are not seen.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LIMIT_S = 7 * 24 * 3600.0  # virtual: a loop that ticks for ever must not hang a test
IDLE_LIMIT_S = 30.0  # real: when no timer is left and nothing happens, the program is stuck


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`time()` starts at 0 and moves only while every task waits."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._now_s = 0.0
        self._limit_s = limit_s
        self._calls_in_threads = 0
        super().__init__(_Selector(self._pass_time))

    def time(self) -> float:
        return self._now_s

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        self._calls_in_threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._on_call_done)
        return future

    def _on_call_done(self, _: asyncio.Future[Any]) -> None:
        self._calls_in_threads -= 1

    def _pass_time(self, timeout_s: float | None) -> bool:
        """Jump to the next timer; False: wait in real time, for threads or sockets."""
        if timeout_s is None or self._calls_in_threads:
            return False
        self._now_s += timeout_s
        if self._now_s > self._limit_s:
            self._limit_s = float("inf")  # so that what is still open can be closed
            raise RuntimeError("virtual time has reached its limit: some task never ends")
        return True


class _Selector(selectors.DefaultSelector):
    def __init__(self, pass_time: Callable[[float | None], bool]) -> None:
        super().__init__()
        self._pass_time = pass_time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self._pass_time(timeout):
            return []
        ready = super().select(IDLE_LIMIT_S)
        if not ready:
            raise RuntimeError(f"nothing happened for {IDLE_LIMIT_S:g} s and no timer is set")
        return ready


def run_virtual(main: Coroutine[Any, Any, T], *, limit_s: float = LIMIT_S) -> T:
    """`asyncio.run` in virtual time. Raises RuntimeError when `limit_s` has gone by."""
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(limit_s)) as runner:
        return runner.run(main)
