"""How a socket's end is learnt: a write that fails says nothing of what the client has said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.websockets import WebSocket

from realtime.runtime.transport import TransportClosed
from realtime.transports.websocket import WebSocketTransport


def test_a_close_is_read_though_a_write_has_failed_before() -> None:
    inbox: list[dict[str, Any]] = [
        {"type": "websocket.connect"},
        {"type": "websocket.disconnect", "code": 1000},
    ]
    accepted: list[str] = []

    async def receive() -> dict[str, Any]:
        return inbox.pop(0)

    async def send(message: Any) -> None:
        if message["type"] == "websocket.send":
            raise OSError("the client has closed")
        accepted.append(message["type"])

    async def main() -> None:
        socket = WebSocket({"type": "websocket"}, receive, send)
        await socket.accept()
        transport = WebSocketTransport(socket)
        for _ in range(2):
            with pytest.raises(TransportClosed):
                await transport.send("{}")
        assert transport.client_close_code is None
        assert await transport.receive() is None
        assert transport.client_close_code == 1000
        await transport.close(1001, "")

    asyncio.run(main())
    assert accepted == ["websocket.accept"]
