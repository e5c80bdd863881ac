"""`parley serve`: takes the port, loads the models, serves until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import uvicorn

if sys.platform != "win32":
    import uvloop

from realtime.app import App, create_app
from realtime.commands.errors import OK, CommandError
from realtime.commands.listening import bind, require_keys
from realtime.settings import Server, Settings

# One append may carry 15 MiB of audio, 20 MiB in base64; the rest is room for its JSON.
MAX_MESSAGE_BYTES = 32 * 2**20
PING_INTERVAL_S = 20.0  # as OpenAI's clients do
PING_TIMEOUT_S = 20.0
# What uvicorn logs as errors of the server: a refused handshake, and text that is not UTF-8.
CLIENT_FAULTS = frozenset(
    {
        "ASGI callable returned without completing handshake.",
        "Invalid UTF-8 sequence received from client.",
    }
)
CLOSE_TIMEOUT_S = 3  # for connections that are still open when the conversations have ended


def serve(settings: Settings) -> int:
    """Runs the server until SIGTERM or SIGINT. Raises CommandError if it cannot start."""
    require_keys(settings.server)
    listener = bind(settings.server.host, settings.server.port)
    with listener:
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(_serve(settings, listener))
    return OK


def _new_loop() -> asyncio.AbstractEventLoop:
    """libuv's loop where it exists: a session costs about a sixth less on it."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(settings: Settings, listener: socket.socket) -> None:
    begin_s = time.monotonic()
    url = address(settings.server, listener.getsockname()[1])

    def tell(line: str) -> None:
        print(line, flush=True)

    def tell_ready() -> None:
        _spare_the_collector()
        tell(f"Parley is ready at {url} after {time.monotonic() - begin_s:.1f} s (Ctrl-C stops it)")

    app = create_app(settings, on_progress=tell, on_ready=tell_ready)
    server = _DrainingServer(_configure(app), app.drain)
    app.on_failure(server.stop)
    await server.serve([listener])
    if app.failure is not None:
        raise CommandError(app.failure)


def _spare_the_collector() -> None:
    """What is loaded stays for good: no collection looks at it again, so pauses stay short."""
    gc.collect()
    gc.freeze()


def _configure(app: App) -> uvicorn.Config:
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line per request to a model
    server_log = logging.getLogger("uvicorn.error")
    server_log.setLevel(logging.WARNING)
    server_log.addFilter(lambda record: record.msg not in CLIENT_FAULTS)
    return uvicorn.Config(
        app.asgi,
        ws="websockets-sansio",
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_ping_interval=PING_INTERVAL_S,
        ws_ping_timeout=PING_TIMEOUT_S,
        ws_per_message_deflate=False,  # audio does not shrink, and compression costs time
        lifespan="on",
        timeout_graceful_shutdown=CLOSE_TIMEOUT_S,
        log_config=None,
        access_log=False,
        server_header=False,
    )


class _DrainingServer(uvicorn.Server):
    """Lets conversations end before connections are closed, and exits without the signal."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._drain = drain

    def stop(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._drain()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


def address(server: Server, port: int) -> str:
    """Where a browser finds the server."""
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"http://{host}:{port}"
