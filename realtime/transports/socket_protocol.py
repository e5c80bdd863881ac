"""The server library's WebSocket protocol, which answers requests that cannot be read too."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# What may wait unread for the application, beside one message of any size: less than a second.
MOST_AHEAD = 8
MOST_AHEAD_BYTES = 64 * 2**10
# From the end of the conversation: the library waits ten for the other side to close as well, and
# then for ever for it to read what was sent.
DROP_S = 15.0


class SocketProtocol(WebSocketsSansIOProtocol):
    """One connection, from its upgrade on.

    A request whose lines are too long or too many gets 431 or 414, any other that is no opening
    handshake 400. The library leaves such answers in its buffer and the connection open; when the
    server stops it then tries to refuse the request once more, which fails and ends the stop.
    """

    _heard_s = 0.0  # when something last came
    _dropping: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        self._heard_s = self.loop.time()
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.transport.is_closing():
            self._refuse()

    def send_receive_event_to_app(self) -> None:
        """Read on while the application is not far behind: the library stops reading after every
        message and begins again when it has been taken, fifty times a second and client."""
        is_small = sum(map(len, self.frames)) <= MOST_AHEAD_BYTES
        reads_on = not self.read_paused and is_small and self.queue.qsize() < MOST_AHEAD
        if reads_on:
            self.read_paused = True  # so the library leaves it as it is
        super().send_receive_event_to_app()
        if reads_on:
            self.read_paused = False

    def keepalive_timeout(self) -> None:
        """A pong that waits unread behind a client's backlog is no sign of a dead client, nor is a
        ping that waits behind what a slow reader has not read; whoever writes sees a stall. Nor is
        anyone dead who goes on writing, and reads afterwards."""
        if self.ping_timeout is None:
            return
        is_behind = self.read_paused or not self.writable.is_set()
        if is_behind or self.loop.time() - self._heard_s < self.ping_timeout:
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
        else:
            super().keepalive_timeout()

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """Nobody speaks here any more: a client that never reads what is left keeps nothing."""
        super().on_task_complete(task)
        if not self.disconnected:
            self._dropping = self.loop.call_later(DROP_S, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._dropping is not None:
            self._dropping.cancel()
        super().connection_lost(exc)

    def _refuse(self) -> None:
        answer = b"".join(self.conn.data_to_send())
        if not answer:
            why = f"This request cannot open a WebSocket: {self.conn.handshake_exc}.\n"
            answer = self.conn.reject(HTTPStatus.BAD_REQUEST, why).serialize()
        self.transport.write(answer)
        self.handshake_complete = True
        self.close_sent = True
        self.transport.close()
