"""The server library's WebSocket protocol, which answers requests that cannot be read too."""

from __future__ import annotations

from http import HTTPStatus

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# What may wait unread for the application, beside one message of any size: less than a second.
MOST_AHEAD = 8
MOST_AHEAD_BYTES = 64 * 2**10


class SocketProtocol(WebSocketsSansIOProtocol):
    """One connection, from its upgrade on.

    A request whose lines are too long or too many gets 431 or 414, any other that is no opening
    handshake 400. The library leaves such answers in its buffer and the connection open; when the
    server stops it then tries to refuse the request once more, which fails and ends the stop.
    """

    def data_received(self, data: bytes) -> None:
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
        ping that waits behind what a slow reader has not read; whoever writes sees a stall."""
        is_behind = self.read_paused or not self.writable.is_set()
        if is_behind and self.ping_timeout is not None:
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
        else:
            super().keepalive_timeout()

    def _refuse(self) -> None:
        answer = b"".join(self.conn.data_to_send())
        if not answer:
            why = f"This request cannot open a WebSocket: {self.conn.handshake_exc}.\n"
            answer = self.conn.reject(HTTPStatus.BAD_REQUEST, why).serialize()
        self.transport.write(answer)
        self.handshake_complete = True
        self.close_sent = True
        self.transport.close()
