"""What whoever is served reads when the server stops before it is done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from realtime.http.answers import error_response
from realtime.http.reception import Refused
from realtime.http.visits import TimeIsUp, Visit

CODE = "server_stopping"
MESSAGE = "The server is shutting down and could not finish this. Try again in a moment."
# A rest of the body may be on its way, which nobody will read.
HEADERS = {"Retry-After": "5", "Connection": "close"}


@asynccontextmanager
async def unless_stopped(visit: Visit) -> AsyncIterator[None]:
    """Interrupts what it holds when the visit is over, by cancellation; then raises Refused, 503.

    One that is over before begins nothing.
    """
    if visit.over.is_set():
        raise _stopped()
    try:
        async with visit.limit(None, 0.0):
            yield
    except TimeIsUp:
        raise _stopped() from None


def _stopped() -> Refused:
    return Refused(error_response(503, CODE, MESSAGE, dict(HEADERS)))
