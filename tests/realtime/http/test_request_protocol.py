"""Connections end whose requests never do; strangers write no lines into the log."""

from __future__ import annotations

import asyncio

import pytest

from realtime.http import request_protocol
from tests.configured_server import ask, configured_server

HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_protocol, "REQUEST_TIMEOUT_S", 0.2)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_a_request_that_is_never_finished_ends_its_connection(begun: bytes) -> None:
    async def run() -> bytes:
        async with configured_server() as port:
            return await ask(port, begun)

    assert asyncio.run(run()) == b""


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    "first",
    [HEALTH, b"POST /v1/realtime/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n"],
    ids=["a whole request", "a body that is not read"],
)
def test_nor_does_a_later_request_last_for_ever(first: bytes) -> None:
    async def run() -> bytes:
        async with configured_server() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            answer = await reader.readuntil(b"}}")
            writer.write(b"GET")  # and nothing more: from here on keep-alive no longer counts
            answer += await reader.read()
            writer.close()
            return answer

    assert asyncio.run(run()).startswith(b"HTTP/1.1 ")


@pytest.mark.usefixtures("short")
def test_a_conversation_is_not_ended_by_it() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        async with configured_server() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                b"GET /v1/realtime HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
                b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            await reader.readuntil(b"session.created")
            over = asyncio.Event()
            loop.call_later(3 * request_protocol.REQUEST_TIMEOUT_S, over.set)
            await over.wait()
            writer.write(b"\x89\x80\0\0\0\0")  # a ping; its pong follows
            await reader.readuntil(b"\x8a\x00")
            writer.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "noise",
    [
        b"\x16\x03\x01 no HTTP\r\n\r\n",
        HEALTH[:-2] + b"Connection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n",
    ],
)
def test_strangers_write_nothing_into_the_log(
    noise: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> bytes:
        async with configured_server() as port:
            return await ask(port, noise)

    assert asyncio.run(run()).startswith(b"HTTP/1.1 ")
    assert caplog.text == ""
