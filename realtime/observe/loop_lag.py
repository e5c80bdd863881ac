"""How late the event loop is: the first sign of blocking code and of too many sessions."""

from __future__ import annotations

import asyncio

from realtime.observe.metrics import Metrics

_INTERVAL_S = 0.05  # often enough to see a stall of one audio frame, cheap enough to leave on


async def watch_loop_lag(metrics: Metrics) -> None:
    """Observe `loop_lag_ms` until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + _INTERVAL_S
        await asyncio.sleep(_INTERVAL_S)
        metrics.observe("loop_lag_ms", max(0.0, (loop.time() - due_s) * 1000.0))
