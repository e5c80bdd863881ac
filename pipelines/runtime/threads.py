"""The beginning and the end of a stage's threads."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence

from pipelines.runtime.handover import hand_over

logger = logging.getLogger(__name__)

JOIN_TIMEOUT_S = 10.0  # longer than one step of any model here; a hung one must not stop the exit


async def load_in_thread(name: str, prepare: Callable[[], None]) -> None:
    """Run `prepare` in a daemon thread, so that a load that hangs cannot stop the exit either."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def load() -> None:
        error: Exception | None = None
        try:
            prepare()
        except Exception as raised:
            error = raised
        hand_over(loop, lambda: settle(error))

    threading.Thread(target=load, name=f"{name}-load", daemon=True).start()
    await done


def join(threads: Sequence[threading.Thread]) -> None:
    """Wait, for a bounded time, until the threads that were started have ended."""
    deadline_s = time.monotonic() + JOIN_TIMEOUT_S
    for thread in threads:
        if thread.ident is None:
            continue
        thread.join(max(0.0, deadline_s - time.monotonic()))
        if thread.is_alive():
            logger.warning("thread %s did not end in %g s", thread.name, JOIN_TIMEOUT_S)
