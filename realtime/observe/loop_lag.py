"""How late the event loop is: the first sign of blocking code and of too many sessions."""

from __future__ import annotations

import asyncio
from collections import deque

from realtime.observe.metrics import Metrics

_INTERVAL_S = 0.05  # often enough to see a stall of one audio frame, cheap enough to leave on
_RECENT = 400  # observations, 20 s: what has become of a server, not what its start was like
_PERCENTILES = {"p50": 50, "p99": 99, "max": 100}


class RecentLag:
    """The latest observations, for whoever asks how the server is now."""

    def __init__(self) -> None:
        self._lags_ms: deque[float] = deque(maxlen=_RECENT)

    def observe(self, lag_ms: float) -> None:
        self._lags_ms.append(lag_ms)

    def view(self) -> dict[str, float]:
        """Median, 99th percentile and maximum in ms, by nearest rank; zeros before the first."""
        ordered = sorted(self._lags_ms) or [0.0]
        ranks = {name: -(-len(ordered) * percent // 100) for name, percent in _PERCENTILES.items()}
        return {name: round(ordered[rank - 1], 2) for name, rank in ranks.items()}


async def watch_loop_lag(metrics: Metrics, recent: RecentLag) -> None:
    """Observe `loop_lag_ms` until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + _INTERVAL_S
        await asyncio.sleep(_INTERVAL_S)
        lag_ms = max(0.0, (loop.time() - due_s) * 1000.0)
        metrics.observe("loop_lag_ms", lag_ms)
        recent.observe(lag_ms)
