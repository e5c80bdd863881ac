"""Slows a client down that sends more than a session needs; nothing of it is lost or refused.

While one message waits, the queue behind it fills and the socket is not read: the client's own
network feels it (back-pressure). Audio has a rate of its own, so that a recording may be sent as
fast as it can be heard, and a flood of other events leaves room for it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from realtime.access.rate import TokenBucket
from realtime.protocol.messages import AppendAudio, ClientMessage
from realtime.runtime.clock import Clock

# A client that opens with a long history sends it at once.
_BURST_S = 2


@dataclass(frozen=True, slots=True)
class Rates:
    """Messages of one session per second, in the long run."""

    events_per_s: int = 500  # a few are usual; a long history is thousands at once
    appends_per_s: int = 1000  # fifty are usual


class Pacing:
    """One per session, for one caller."""

    def __init__(self, rates: Rates, clock: Clock) -> None:
        self._clock = clock
        self._events = TokenBucket(rates.events_per_s, rates.events_per_s * _BURST_S)
        self._appends = TokenBucket(rates.appends_per_s, rates.appends_per_s * _BURST_S)

    async def wait_for(self, message: ClientMessage) -> None:
        """Return when the message may be handled: mostly at once."""
        bucket = self._appends if isinstance(message, AppendAudio) else self._events
        now_ms = self._clock.now_ms()
        delay_ms = bucket.take(now_ms)
        if delay_ms > 0:
            await self._clock.wait(asyncio.Event(), now_ms + delay_ms)
