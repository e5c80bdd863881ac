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
# What uvicorn logs as if it were the server's fault, a line for every stranger that tries a port;
# and of answers that break off, of which whoever broke them off has told.
NO_FAULTS = frozenset(
    {
        "ASGI callable returned without completing handshake.",
        "ASGI callable returned without completing response.",
        "Invalid HTTP request received.",
        "Invalid UTF-8 sequence received from client.",
        "Unsupported upgrade request.",
    }
)
# Of nothing but connections whose clients do not read; with tasks it is worth a line.
CANCELS = "Cancel %s running task(s), timeout graceful shutdown exceeded"
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
        stopping.bind(server.stop, app.hurry, lambda: _describe_open(app))
        app.on_failure(server.stop)
        await server.serve([listener])
    return app


def _describe_open(app: App) -> str:
    """What a server that stops lets people finish, in words."""
    told: list[str] = []
    if conversations := app.registry.count:
        noun = "conversation" if conversations == 1 else "conversations"
        told.append(f"{conversations} {noun} may finish what is being said")
    if requests := app.visits.count:
        noun = "audio request" if requests == 1 else "audio requests"
        told.append(f"{requests} {noun} may be answered")
    return ", ".join(told)


def _spare_the_collector() -> None:
    """What is loaded stays for good: no collection looks at it again, so pauses stay short."""
    gc.collect()
    gc.freeze()


def _configure(app: App, settings: Settings, tls: ssl.SSLContext | None) -> uvicorn.Config:
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line per request to a model
    server_log = logging.getLogger("uvicorn.error")
    server_log.setLevel(logging.WARNING)
    server_log.addFilter(_is_fault)
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


def _is_fault(record: logging.LogRecord) -> bool:
    cancels_nothing = record.msg == CANCELS and record.args == (0,)
    return record.msg not in NO_FAULTS and not cancels_nothing


class StopRequests:
    """SIGINT and SIGTERM: the first lets people finish, and then models; later ones do not."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.count = 0
        self._tell = tell
        self._stop: Callable[[], None] = lambda: None
        self._hurry: Callable[[], None] = lambda: None
        self._describe_open: Callable[[], str] = lambda: ""

    def bind(
        self, stop: Callable[[], None], hurry: Callable[[], None], describe_open: Callable[[], str]
    ) -> None:
        """What the first request does, and what each later one. describe_open: what may finish; ""
        where nothing is open."""
        self._stop, self._hurry, self._describe_open = stop, hurry, describe_open

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
        still_open = self._describe_open()
        if still_open:
            self._tell(f"Stopping: {still_open}; again: now")
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
