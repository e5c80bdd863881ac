"""Upgrades that cannot be read are answered, and do not stand in the way of the server's end."""

from __future__ import annotations

import asyncio
import json
from typing import cast

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from realtime.commands import serve
from realtime.runtime import ingress
from realtime.settings import Limits, Settings
from realtime.transports.socket_protocol import (
    MOST_AHEAD,
    MOST_AHEAD_BYTES,
    SocketProtocol,
)
from tests.configured_server import ask, configured_server

CLEARED = "input_audio_buffer.cleared"
UPGRADE = (
    "Host: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


def upgrade(extra: str = "", *, path: str = "/v1/realtime") -> bytes:
    return f"GET {path} HTTP/1.1\r\n{UPGRADE}{extra}\r\n".encode()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (upgrade(f"Cookie: {'c' * 9000}\r\n"), 431),
        (upgrade("".join(f"X-Header-{n}: x\r\n" for n in range(130))), 431),
        (upgrade(path=f"/v1/realtime?model={'m' * 9000}"), 414),
        (upgrade("Content-Length: 5\r\n"), 400),
        (upgrade("Transfer-Encoding: chunked\r\n"), 400),
    ],
    ids=["long header", "many headers", "long address", "body", "chunks"],
)
def test_an_upgrade_that_cannot_be_read_is_refused(request_: bytes, status: int) -> None:
    async def run() -> bytes:
        async with configured_server() as port:
            return await ask(port, request_)

    head, _, body = asyncio.run(run()).partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert f"Content-Length: {len(body)}".encode() in head and body


def test_the_server_still_ends_the_other_connections() -> None:
    async def run() -> int | None:
        reader, writer = None, None
        async with configured_server() as port:
            url = f"ws://127.0.0.1:{port}/v1/realtime"
            client = await connect(url, proxy=None, compression=None)
            await client.recv()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(upgrade(f"Cookie: {'c' * 9000}\r\n"))
            await reader.readline()
        with pytest.raises(ConnectionClosed):
            while True:
                await client.recv()
        await reader.read()
        writer.close()
        return client.close_code

    assert asyncio.run(run()) == 1001


@pytest.mark.parametrize("path", ["/realtime", "/", "/v1/realtime/", "/v1/realtime/calls"])
def test_a_socket_at_another_address_is_told_the_right_one(path: str) -> None:
    async def run() -> bytes:
        async with configured_server() as port:
            return await ask(port, upgrade(path=path))

    head, _, body = asyncio.run(run()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404 ")
    error = json.loads(body)["error"]
    assert error["code"] == "not_found"
    assert error["message"] == (
        f"There is no WebSocket at {path}: open conversations at /v1/realtime."
    )


def test_a_client_that_is_read_slowly_is_not_taken_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve, "PING_INTERVAL_S", 0.1)
    monkeypatch.setattr(serve, "PING_TIMEOUT_S", 0.1)
    monkeypatch.setattr(ingress, "_QUEUED_MESSAGES", 4)  # the rest waits in the network
    slow = Settings(limits=Limits(appends_per_second=50))
    append = json.dumps({"type": "input_audio_buffer.append", "audio": ""})

    async def run() -> str:
        async with configured_server(slow) as port:
            url = f"ws://127.0.0.1:{port}/v1/realtime"
            async with connect(url, proxy=None, compression=None, ping_interval=None) as client:
                for _ in range(150):  # half a second more than the server takes at once
                    await client.send(append)
                await client.send('{"type": "input_audio_buffer.clear"}')
                while (event := json.loads(await client.recv()))["type"] != CLEARED:
                    assert event["type"] == "session.created"
        return event["type"]

    assert asyncio.run(run()) == CLEARED


@pytest.mark.parametrize(
    ("message", "read_before_the_stop"),
    [(b"x" * 1000, MOST_AHEAD + 1), (b"x" * (MOST_AHEAD_BYTES + 1), 1)],
    ids=["small", "large"],
)
def test_what_nobody_takes_is_not_read_for_ever(message: bytes, read_before_the_stop: int) -> None:
    class Reading:
        is_paused = False

        def pause_reading(self) -> None:
            self.is_paused = True

        def resume_reading(self) -> None:
            self.is_paused = False

    async def run() -> None:
        protocol, reading = SocketProtocol.__new__(SocketProtocol), Reading()
        protocol.queue, protocol.read_paused, protocol.close_sent = asyncio.Queue(), False, False
        protocol.curr_msg_data_type = "text"
        protocol.transport = cast("asyncio.Transport", reading)
        for _ in range(read_before_the_stop):
            assert not reading.is_paused
            protocol.frames = [message]
            protocol.send_receive_event_to_app()
        assert reading.is_paused
        for left in reversed(range(read_before_the_stop)):
            await protocol.receive()
            assert reading.is_paused == (left > 0)

    asyncio.run(run())
