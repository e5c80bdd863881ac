"""The server library's HTTP protocol, with a time limit for clients that never finish asking."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_TIMEOUT_S = 10.0  # for a request's head: a client that is there sends it at once


class RequestProtocol(H11Protocol):
    """One connection. It is closed if no request begins to be answered within the time limit.

    The limit counts from the connection's begin and from the end of each answer; an upgrade to a
    WebSocket ends it. Bodies are the business of whoever reads them.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self._is_upgraded = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._is_upgraded = True
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Time runs while the client is to say what it wants."""
        is_answered = self.cycle is not None and not self.cycle.response_complete
        if is_answered or self._is_upgraded or self.transport.is_closing():
            self._stop_watching()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_TIMEOUT_S, self.transport.close)

    def _stop_watching(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
