"""How long aborts take, and what every stage can tell of itself."""

from __future__ import annotations

import time

from pipelines.ports import StageStats
from pipelines.runtime.ticket import Ticket


class AbortLatency:
    """From the abort of a request until everything behind it was gone."""

    def __init__(self) -> None:
        self.count = 0
        self.last_ms = 0.0
        self.worst_ms = 0.0

    def record(self, ticket: Ticket) -> None:
        """Count a reaped ticket, if it was aborted."""
        if ticket.aborted_at_s is not None:
            self.count += 1
            self.last_ms = (time.monotonic() - ticket.aborted_at_s) * 1000
            self.worst_ms = max(self.worst_ms, self.last_ms)


def plain_stats(name: str, active: int, aborts: AbortLatency) -> StageStats:
    """Of a stage that knows neither slots nor steps."""
    return StageStats(
        name,
        active,
        aborts=aborts.count,
        last_abort_ms=aborts.last_ms,
        worst_abort_ms=aborts.worst_ms,
    )
