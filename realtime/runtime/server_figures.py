"""All figures of one server at this moment, for `/health` and for Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from pipelines.ports import Cascade
from realtime.observe.figures import server_families
from realtime.observe.loop_lag import RecentLag
from realtime.observe.metrics import Metrics
from realtime.observe.prometheus import render
from realtime.runtime.load import show_load
from realtime.runtime.registry import Registry
from realtime.runtime.stage_figures import stage_families


class ServerFigures:
    """lag: of the event loop, as of late. audio_requests: those under /v1/audio in work."""

    def __init__(
        self,
        registry: Registry,
        cascade: Cascade,
        metrics: Metrics,
        lag: RecentLag,
        audio_requests: Callable[[], int],
    ) -> None:
        self._registry = registry
        self._cascade = cascade
        self._metrics = metrics
        self._lag = lag
        self._audio_requests = audio_requests
        self._started_at_s = time.time()

    def live(self) -> dict[str, object]:
        """What an operator watches: after the last client has gone every count is back."""
        return {
            "sessions": self._registry.count,
            "parked": self._registry.parked,
            "requests": self._registry.open_requests,
            "audio_requests": self._audio_requests(),
            "stages": self._cascade.active,
            "tasks": len(asyncio.all_tasks()),
            "loop_lag_ms": self._lag.view(),
            **show_load(self._cascade.stats),
        }

    def exposition(self, *, is_ready: bool) -> str:
        """Everything that is known, in Prometheus' format."""
        gauges = {
            "ready": float(is_ready),
            "start_time_seconds": self._started_at_s,
            "sessions": self._registry.count,
            "sessions_parked": self._registry.parked,
            "sessions_limit": self._registry.limit,
            "conversation_requests": self._registry.open_requests,
            "audio_requests": self._audio_requests(),
            "tasks": len(asyncio.all_tasks()),
        }
        of_server = server_families(self._metrics, gauges)
        return render([*of_server, *stage_families(self._cascade.stats)])
