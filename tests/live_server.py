"""A server on a real socket in the test's own event loop, so that tests can look inside."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np
import uvicorn

from pipelines.ports import Cascade
from realtime.app import App, create_app
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm
from realtime.settings import Settings

PATIENCE_S = 20.0
MAX_MESSAGE_BYTES = 32 * 1024 * 1024  # this, and no compression: as `parley serve` has it


@dataclass(frozen=True, slots=True)
class LiveServer:
    app: App
    port: int

    @property
    def http_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/v1/realtime"


@asynccontextmanager
async def live_server(
    cascade: Cascade, settings: Settings | None = None
) -> AsyncIterator[LiveServer]:
    """Serves `cascade` on a free loopback port until the block ends."""
    ready = asyncio.Event()
    app = create_app(settings or Settings(), cascade=cascade, on_ready=ready.set)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(
            app.asgi,
            ws="websockets-sansio",
            ws_max_size=MAX_MESSAGE_BYTES,
            ws_per_message_deflate=False,
            lifespan="on",
            log_config=None,
            timeout_graceful_shutdown=2,
        )
    )
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve([listener]), name="serving")
        try:
            async with asyncio.timeout(PATIENCE_S):
                await ready.wait()
                while not server.started:
                    await asyncio.sleep(0)
            yield LiveServer(app, listener.getsockname()[1])
        finally:
            server.should_exit = True
            await serving
            listener.close()


def tone(ms: int, hz: float = 200.0) -> Pcm:
    """int16 [n] at WIRE_RATE_HZ: speech to a detector that hears loudness."""
    phase = np.arange(WIRE_RATE_HZ * ms // 1000) * 2 * np.pi * hz / WIRE_RATE_HZ
    return (np.sin(phase) * 12_000).astype(np.int16)


def silence(ms: int) -> Pcm:
    return np.zeros(WIRE_RATE_HZ * ms // 1000, np.int16)
