"""Whoever reads slowly answers pings late: they wait behind what was sent before."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from websockets.protocol import Event
from websockets.server import ServerProtocol

from realtime.transports.socket_protocol import SocketProtocol


class Ended(Exception):
    """The connection was given up."""


@pytest.mark.parametrize(
    ("read_paused", "is_writable", "is_heard", "is_kept"),
    [
        (False, True, False, False),
        (True, True, False, True),
        (False, False, False, True),
        (False, True, True, True),
    ],
    ids=["idle", "not read", "not reading", "writing"],
)
def test_a_late_pong_ends_a_connection_only_where_nothing_explains_it(
    read_paused: bool, is_writable: bool, is_heard: bool, is_kept: bool
) -> None:
    class Connection:
        parser_exc = handshake_exc = None

        def receive_data(self, data: bytes) -> None:
            pass

        def events_received(self) -> list[Event]:
            return []

    class Transport:
        def is_closing(self) -> bool:
            raise Ended  # what the library asks first before it closes

    async def run() -> None:
        protocol = SocketProtocol.__new__(SocketProtocol)
        # Silent since the machine was started, which is longer ago than the timeout.
        protocol.loop, protocol.ping_timeout = asyncio.get_running_loop(), 60.0
        protocol.transport = cast("asyncio.Transport", Transport())
        protocol.read_paused, protocol.close_sent = read_paused, False
        protocol.writable, protocol.pong_timer = asyncio.Event(), None
        protocol.conn = cast("ServerProtocol", Connection())
        if is_heard:
            protocol.data_received(b"a frame")
        if is_writable:
            protocol.writable.set()
        if not is_kept:
            with pytest.raises(Ended):
                protocol.keepalive_timeout()
            return
        protocol.keepalive_timeout()
        assert protocol.pong_timer is not None
        protocol.pong_timer.cancel()

    asyncio.run(run())
