"""A chat-completions server on loopback that behaves, or misbehaves, exactly as it is told."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

Behaviour: TypeAlias = Callable[[asyncio.StreamWriter], Awaitable[None]]

STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
DONE = b"data: [DONE]\n\n"
WATCH_S = 0.01  # how soon a client that left is noticed


class ChatServer:
    """Answers each request with the next of its behaviours, the last one for ever.

    bodies, heads: what was asked. connections: how many are open. accepted: how many there were.
    """

    def __init__(self, behaviours: Sequence[Behaviour]) -> None:
        self._behaviours = behaviours
        self.bodies: list[dict[str, Any]] = []
        self.heads: list[str] = []
        self.connections = 0
        self.accepted = 0
        self.base_url = ""

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
        try:
            yield
        finally:
            listener.close()
            await listener.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.accepted += 1
        try:
            while head := await self._read_head(reader):
                if head.startswith("GET"):  # whether anybody is there, which is no request
                    self.accepted -= 1
                    await replies("404 Not Found")(writer)
                    break
                await self._read_body(reader, head)
                number = min(len(self.bodies), len(self._behaviours)) - 1
                await self._answer(self._behaviours[number], reader, writer)
                if writer.is_closing():
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.connections -= 1
            writer.close()

    async def _read_head(self, reader: asyncio.StreamReader) -> str | None:
        try:
            return (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:
            return None

    async def _read_body(self, reader: asyncio.StreamReader, head: str) -> None:
        lengths = [
            int(line.partition(":")[2])
            for line in head.split("\r\n")
            if line.lower().startswith("content-length:")
        ]
        self.heads.append(head)
        self.bodies.append(json.loads(await reader.readexactly(lengths[0])))

    async def _answer(
        self, behaviour: Behaviour, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """A client that leaves ends the behaviour, even one that says nothing."""

        async def answer() -> None:
            try:
                await behaviour(writer)
            except ConnectionError:
                pass

        async def watch() -> None:
            # A look, not a read: what the client sends next belongs to its next request.
            for _ in itertools.count():
                await asyncio.sleep(WATCH_S)
                if reader.at_eof() or writer.is_closing() or reader.exception():
                    return

        async with asyncio.TaskGroup() as tasks:
            answering = tasks.create_task(answer())
            watching = tasks.create_task(watch())
            watching.add_done_callback(lambda _: answering.cancel())
            answering.add_done_callback(lambda _: watching.cancel())


def event(*, finish_reason: str | None = None, **delta: Any) -> bytes:
    """One server-sent event with a choice's delta."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def streams(*parts: bytes, then: Callable[[], Awaitable[None]] | None = None) -> Behaviour:
    """Write the parts one by one, do `then`, and close the connection."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        for part in parts:
            writer.write(part)
            await writer.drain()
        if then is not None:
            await then()
        writer.close()

    return behave


def replies(status: str, body: bytes = b"", *, close: bool = True, **headers: str) -> Behaviour:
    """A whole answer. Underscores in the names of headers stand for hyphens."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}"]
        lines += ["connection: close"] if close else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        if close:
            writer.close()

    return behave


async def hang() -> None:
    await asyncio.Event().wait()
