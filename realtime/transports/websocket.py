"""One WebSocket as a session's transport."""

from __future__ import annotations

import contextlib

from starlette.websockets import WebSocket, WebSocketDisconnect

from realtime.runtime.transport import TransportClosed

MAX_REASON_BYTES = 123  # a close frame holds 125 bytes, two of which are the code
# What stands for a close frame without a code, or for none at all (RFC 6455, 7.1.5).
_SAID_NOTHING = (None, 1005, 1006)


class WebSocketTransport:
    """Implements `runtime.transport.Transport` on an accepted Starlette WebSocket."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._is_closed = False  # by either side, as far as it has been read
        self._is_broken = False  # nothing can be sent any more; how it ended is still to be read
        self._client_close_code: int | None = None

    @property
    def client_close_code(self) -> int | None:
        return self._client_close_code

    async def receive(self) -> str | bytes | None:
        if self._is_closed:
            return None
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            if not self._is_closed and message.get("code") not in _SAID_NOTHING:
                self._client_close_code = message.get("code")
            self._is_closed = True
            return None
        text: str | None = message.get("text")
        return message["bytes"] if text is None else text

    async def send(self, text: str) -> None:
        if self._is_closed or self._is_broken:
            raise TransportClosed
        try:
            await self._socket.send({"type": "websocket.send", "text": text})
        except (WebSocketDisconnect, RuntimeError, OSError) as error:
            self._is_broken = True
            raise TransportClosed from error

    async def close(self, code: int, reason: str) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        short = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        # The client may have gone a moment ago: then there is nothing left to close.
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            await self._socket.close(code, short)
