"""`parley serve`: takes the port, loads the models, serves until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import uvicorn

if sys.platform != "win32":
    import uvloop

from pipelines.types import StageError
from realtime.app import App, create_app
from realtime.commands.errors import OK, CommandError
from realtime.commands.listening import bind, describe_admission, require_keys
from realtime.commands.tls import load_tls
from realtime.http.request_protocol import RequestProtocol
from realtime.settings import Server, Settings
from realtime.stage_checks import check_packages
from realtime.transports.socket_protocol import SocketProtocol

BYTES_PER_MIB = 2**20
PING_INTERVAL_S = 20.0  # as OpenAI's clients do
PING_TIMEOUT_S = 20.0
# What uvicorn logs as if it were the server's fault, a line for every stranger that tries a port.
CLIENT_FAULTS = frozenset(
    {
        "ASGI callable returned without completing handshake.",
        "Invalid HTTP request received.",
        "Invalid UTF-8 sequence received from client.",
        "Unsupported upgrade request.",
    }
)
CLOSE_TIMEOUT_S = 3  # for connections that are still open when the conversations have ended


def serve(settings: Settings) -> int:
    """Runs the server until SIGTERM or SIGINT. Raises CommandError if it cannot start."""
    require_keys(settings.server)
    _require_packages(settings)
    tls = load_tls(settings.server)
    listener = bind(settings.server.host, settings.server.port)
    with listener, asyncio.Runner(loop_factory=_new_loop) as runner:
        app = runner.run(_serve(settings, listener, tls))
        if app is None or app.is_loading:
            # A library that is reading a model cannot be interrupted, and aborts the process if
            # Python is taken down around it.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(OK)
    if app.failure is not None:
        raise CommandError(app.failure)
    return OK


def _require_packages(settings: Settings) -> None:
    """Those of every stage, before the first model is loaded. Raises CommandError."""
    try:
        check_packages(settings.stages)
    except StageError as error:
        raise CommandError(error.message) from error


def _new_loop() -> asyncio.AbstractEventLoop:
    """libuv's loop where it exists: a session costs about a sixth less on it."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(
    settings: Settings, listener: socket.socket, tls: ssl.SSLContext | None
) -> App | None:
    """The application, when it has ended; None if it was told to stop before it existed."""
    begin_s = time.monotonic()
    url = address(settings.server, listener.getsockname()[1])

    def tell(line: str) -> None:
        print(line, flush=True)

    def tell_ready() -> None:
        _spare_the_collector()
        tell(f"Parley is ready at {url} after {time.monotonic() - begin_s:.1f} s (Ctrl-C stops it)")

    stopping = StopRequests(tell)
    with stopping.heard():
        tell(describe_admission(settings.server))
        try:
            app = create_app(settings, on_progress=tell, on_ready=tell_ready)
        except StageError as error:  # of a stage in this process that cannot be made
            raise CommandError(error.message) from error
        await asyncio.sleep(0)  # for signals that came meanwhile
        if stopping.count:
            return None
        server = _DrainingServer(_configure(app, settings, tls), app.drain)
        stopping.bind(server.stop, app.hurry, lambda: app.registry.count)
        app.on_failure(server.stop)
        await server.serve([listener])
    return app


def _spare_the_collector() -> None:
    """What is loaded stays for good: no collection looks at it again, so pauses stay short."""
    gc.collect()
    gc.freeze()


def _configure(app: App, settings: Settings, tls: ssl.SSLContext | None) -> uvicorn.Config:
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line per request to a model
    server_log = logging.getLogger("uvicorn.error")
    server_log.setLevel(logging.WARNING)
    server_log.addFilter(lambda record: record.msg not in CLIENT_FAULTS)
    return uvicorn.Config(
        app.asgi,
        http=RequestProtocol,
        ws=SocketProtocol,
        ws_max_size=settings.limits.message_mib * BYTES_PER_MIB,
        ws_ping_interval=PING_INTERVAL_S,
        ws_ping_timeout=PING_TIMEOUT_S,
        ws_per_message_deflate=False,  # audio does not shrink, and compression costs time
        lifespan="on",
        timeout_graceful_shutdown=CLOSE_TIMEOUT_S,
        ssl_context_factory=None if tls is None else lambda _config, _default: tls,
        log_config=None,
        access_log=False,
        server_header=False,
    )


class StopRequests:
    """SIGINT and SIGTERM: the first lets people finish, and then models; later ones do not."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.count = 0
        self._tell = tell
        self._stop: Callable[[], None] = lambda: None
        self._hurry: Callable[[], None] = lambda: None
        self._open: Callable[[], int] = lambda: 0

    def bind(
        self, stop: Callable[[], None], hurry: Callable[[], None], open_sessions: Callable[[], int]
    ) -> None:
        """What the first request does, and what each later one. open_sessions: how many may
        finish."""
        self._stop, self._hurry, self._open = stop, hurry, open_sessions

    @contextmanager
    def heard(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self._take)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def _take(self) -> None:
        self.count += 1
        if self.count > 1:
            self._hurry()
            return
        still_open = self._open()
        if still_open:
            noun = "conversation" if still_open == 1 else "conversations"
            self._tell(f"Stopping: {still_open} {noun} may finish what is being said; again: now")
        self._stop()


class _DrainingServer(uvicorn.Server):
    """Lets conversations end before connections are closed; signals are its caller's."""

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
        yield


def address(server: Server, port: int) -> str:
    """Where a browser finds the server."""
    host = f"[{server.host}]" if ":" in server.host else server.host
    scheme = "https" if server.has_tls else "http"
    return f"{scheme}://{host}:{port}"
