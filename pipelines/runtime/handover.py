"""From a stage's threads to the event loop, which may close before the threads end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pipelines.ports import Progress


def hand_over(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> bool:
    """Have the loop call `callback` soon; False if the loop is closed. Safe in any thread."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        return False
    return True


def on_loop(progress: Progress) -> Progress:
    """The same progress callback, for threads: its lines arrive on the running loop."""
    loop = asyncio.get_running_loop()

    def hop(line: str) -> None:
        hand_over(loop, lambda: progress(line))

    return hop
