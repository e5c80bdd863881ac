"""The server as `parley serve` configures it, in the test's own event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pipelines.fakes.cascade import FakeCascade
from realtime.app import create_app
from realtime.commands import serve
from realtime.settings import Settings

PATIENCE_S = 20.0


@asynccontextmanager
async def configured_server(settings: Settings | None = None) -> AsyncIterator[int]:
    """Its port, until the block ends; then it must stop in time, and without an exception."""
    settings, ready = settings or Settings(), asyncio.Event()
    app = create_app(settings, cascade=FakeCascade(), on_ready=ready.set)
    server = serve._DrainingServer(serve._configure(app, settings, None), app.drain)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            group.create_task(server.serve([listener]), name="serving")
            try:
                await ready.wait()
                while not server.started:
                    await asyncio.sleep(0)
                yield port
            finally:
                server.stop()


async def ask(port: int, request: bytes) -> bytes:
    """All that the server says to these bytes, until it ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()
