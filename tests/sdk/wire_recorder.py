"""A tunnel between an SDK and the server that passes bytes on unchanged and writes them down.

One listener per scenario, so that every connection has a name without a word in its traffic. It
runs in a thread of its own. Where a client insists on TLS, it ends here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.sdk.wire_log import Entry, WireLog

CHUNK_BYTES = 65_536
START_TIMEOUT_S = 10.0
SETTLE_TIMEOUT_S = 10.0
TEXT, CONTINUATION = 1, 0  # opcodes of WebSocket frames


class WireRecorder:
    """tls: what clients that insist on TLS are shown; everybody else comes without."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._connections = 0
        self._open = 0
        self._listeners: list[asyncio.Server] = []
        self._transports: set[asyncio.WriteTransport] = set()
        self._faults: list[Exception] = []  # traffic that cannot be read

    @contextmanager
    def run(self) -> Iterator[WireRecorder]:
        thread = threading.Thread(target=self._loop.run_forever, name="wire recorder", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(START_TIMEOUT_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(START_TIMEOUT_S)
            self._loop.close()

    def listen(self, log: WireLog, server_port: int, *, is_secure: bool = False) -> int:
        """The port of a new listener before the server, whose traffic goes to `log`."""
        listening = self._listen(log, server_port, self._tls if is_secure else None)
        starting = asyncio.run_coroutine_threadsafe(listening, self._loop)
        return starting.result(START_TIMEOUT_S)

    def settle(self) -> None:
        """Wait until every connection has ended on both sides: the logs are whole then."""
        end_s = time.monotonic() + SETTLE_TIMEOUT_S
        while self._open:
            assert time.monotonic() < end_s, f"{self._open} connections have not ended"
            time.sleep(0.01)
        if self._faults:
            raise ExceptionGroup("the wire could not be read", self._faults)

    def hang_up(self) -> None:
        """Break every connection off, on both sides, as a lost network does in the end."""

        async def abort() -> None:
            for transport in self._transports:
                transport.abort()

        asyncio.run_coroutine_threadsafe(abort(), self._loop).result(START_TIMEOUT_S)

    async def _listen(self, log: WireLog, server_port: int, tls: ssl.SSLContext | None) -> int:
        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._tunnel(reader, writer, server_port, log)

        server = await asyncio.start_server(tunnel, "127.0.0.1", 0, ssl=tls)
        self._listeners.append(server)
        return server.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        for listener in self._listeners:
            listener.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _tunnel(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server_port: int,
        log: WireLog,
    ) -> None:
        self._connections += 1
        self._open += 1
        number = self._connections
        to_server = _Reader(lambda kind, data: log.add(Entry(number, "client", kind, data)))
        to_client = _Reader(lambda kind, data: log.add(Entry(number, "server", kind, data)))
        try:
            from_server, at_server = await asyncio.open_connection("127.0.0.1", server_port)
            self._transports |= {writer.transport, at_server.transport}
            with contextlib.closing(at_server):
                async with asyncio.TaskGroup() as group:
                    group.create_task(_copy(reader, at_server, to_server))
                    group.create_task(_copy(from_server, writer, to_client))
        except* (OSError, ValueError) as faults:
            self._faults += faults.exceptions
        finally:
            writer.close()
            self._transports = {t for t in self._transports if not t.is_closing()}
            self._open -= 1


async def _copy(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, watcher: _Reader
) -> None:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := await source.read(CHUNK_BYTES):
            watcher.feed(data)
            target.write(data)
            await target.drain()
    with contextlib.suppress(ConnectionError, ssl.SSLError, RuntimeError):
        target.close()


class _Reader:
    """One direction of a connection: HTTP messages, and after an upgrade WebSocket frames.

    tell: gets ("http", first line and headers and body) and ("event", decoded JSON).
    """

    def __init__(self, tell: Callable[[str, Any], None]) -> None:
        self._tell = tell
        self._buffer = bytearray()
        self._is_socket = False
        self._message = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data
        while self._take_frame() if self._is_socket else self._take_http():
            pass

    def _take_http(self) -> bool:
        head, end, _ = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body_end = len(head) + len(end) + int(headers.get("content-length", "0"))
        if len(self._buffer) < body_end:
            return False
        body = bytes(self._buffer[len(head) + len(end) : body_end])
        del self._buffer[:body_end]
        self._tell("http", {"first": first, "headers": headers, "body": body.decode()})
        # A client whose upgrade is refused hangs up, so its side needs no way back.
        self._is_socket = headers.get("upgrade", "").lower() == "websocket"
        return True

    def _take_frame(self) -> bool:
        data = self._buffer
        if len(data) < 2:
            return False
        if data[0] & 0x70:
            raise ValueError("a compressed frame, though the server offers no compression")
        is_final, opcode = bool(data[0] & 0x80), data[0] & 0x0F
        is_masked, size, start = bool(data[1] & 0x80), data[1] & 0x7F, 2
        if size >= 126:
            start = 4 if size == 126 else 10
            size = int.from_bytes(data[2:start])
        mask = bytes(data[start : start + 4]) if is_masked else b""
        start += len(mask)
        if len(data) < start + size:
            return False
        payload = bytes(data[start : start + size])
        del data[: start + size]
        if mask:
            payload = _unmasked(payload, mask)
        if opcode in (TEXT, CONTINUATION):
            self._message += payload
            if is_final:
                self._tell("event", json.loads(self._message))
                self._message.clear()
        return True


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    """As one big number: a loop over bytes is slow where megabytes of audio pass."""
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(size)
