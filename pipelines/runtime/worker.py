"""The worker process: one stage, served to the process that started it."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import zmq

from pipelines.ports import Metered, Stage
from pipelines.runtime.failures import stage_failed
from pipelines.runtime.handover import hand_over
from pipelines.runtime.message_channel import Channel, connected
from pipelines.runtime.messages import (
    Abort,
    Close,
    Ended,
    Failed,
    Finish,
    FromWorker,
    Hello,
    Hurry,
    Loading,
    Open,
    Ping,
    Pong,
    Push,
    Read,
    Start,
    Started,
)
from pipelines.runtime.worker_failures import describe_failure
from pipelines.runtime.worker_streams import CarriedStream
from pipelines.types import StageError

EXIT_UNREADABLE = 2  # the server said what cannot be read: both are not of one version
REAP_FIRST_S = 0.001  # how soon it is looked again whether an aborted request is gone
REAP_LONGEST_S = 0.05  # doubled up to this, so that a stage that hangs costs nothing
STDIN = 0
LOG_FORMAT = "%(asctime)s %(levelname)s {stage}: %(message)s"  # the server's, and who says it
CHATTY = "httpx"  # a line for every request to a model's own server

logger = logging.getLogger(__name__)

AnyStage = Stage[Any, Any, Any]


async def serve(endpoint: str) -> None:
    """Connect to the server's socket and serve the stage that it asks for, until it says Close."""
    context = zmq.Context()
    try:
        socket = connected(context.socket(zmq.PAIR))
        socket.connect(endpoint)
        async with asyncio.TaskGroup() as tasks:
            await Worker(socket, tasks).run()
    finally:
        context.destroy(linger=0)


class Worker:
    """Messages in, messages out. Everything but the stage's own threads runs on the loop."""

    def __init__(self, socket: zmq.Socket[bytes], tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._stop = asyncio.Event()
        self._stage: AnyStage | None = None
        self._output_window = 0
        self._streams: dict[int, tuple[CarriedStream, asyncio.Task[StageError | None]]] = {}
        self._dying: deque[int] = deque()  # aborted, and perhaps not yet freed by the stage
        self._reaping: asyncio.TimerHandle | None = None
        self._channel = Channel(socket, self._receive, self._on_unreadable)

    async def run(self) -> None:
        self._loop.add_reader(STDIN, self._on_stdin)
        self._send(Hello())
        await self._stop.wait()
        for number in list(self._streams):
            self._abort(number)
        if self._stage is not None:
            await self._stage.close()
        self._loop.remove_reader(STDIN)
        if self._reaping is not None:
            self._reaping.cancel()
        self._channel.close()

    # ---- the line ----------------------------------------------------------------------------

    def _send(self, message: FromWorker) -> None:
        self._channel.send(message)

    def _receive(self, message: object) -> None:
        match message:
            case Push(number, item):
                self._tell(number, lambda stream: stream.push(item))
            case Read(number, outputs):
                self._tell(number, lambda stream: stream.read(outputs))
            case Open(number, request):
                self._open(number, request)
            case Finish(number):
                self._tell(number, lambda stream: stream.finish())
            case Abort(number):
                self._abort(number)
            case Hurry(number, urgency):
                self._tell(number, lambda stream: stream.hurry(urgency))
            case Ping():
                self._send_stats()
            case Start():
                self._tasks.create_task(self._load(message), name="loading")
            case Close():
                self._stop.set()
            case _:
                logger.warning("the server said %r, which a worker does not hear", message)

    def _tell(self, number: int, act: Callable[[CarriedStream], None]) -> None:
        # What comes for a stream that is over has crossed its end on the way.
        if number in self._streams:
            act(self._streams[number][0])

    def _on_unreadable(self, error: Exception) -> None:
        logger.critical("what the server says cannot be read: %s", error)
        os._exit(EXIT_UNREADABLE)

    def _on_stdin(self) -> None:
        if not os.read(STDIN, 1):
            os._exit(1)  # the server is gone, so nothing here is wanted any more

    # ---- the stage ---------------------------------------------------------------------------

    async def _load(self, start: Start) -> None:
        _begin_log(start)
        sys.path[:] = start.import_path
        self._output_window = start.output_window
        try:
            stage = _build(start)
            await stage.start(self._progress)
            # What was loaded stays to the end: no collection of garbage has to walk it.
            gc.collect()
            gc.freeze()
        except Exception as error:
            if not type(error).__module__.startswith("pipelines."):  # those speak for themselves
                logger.exception("stage %s cannot be loaded", start.stage)
            self._send(describe_failure(error))  # the server ends this process
        else:
            self._stage = stage
            self._send(Started())

    def _progress(self, line: str) -> None:
        if threading.get_ident() == self._thread:
            self._send(Loading(line))
        else:
            hand_over(self._loop, lambda: self._send(Loading(line)))

    def _send_stats(self) -> None:
        try:
            stage = self._stage
            self._send(Pong(stage.stats if isinstance(stage, Metered) else None))
        except Exception:
            # A stage that cannot tell what it does is alive all the same.
            logger.exception("the stage's figures cannot be told")
            self._send(Pong(None))

    # ---- streams -----------------------------------------------------------------------------

    def _open(self, number: int, request: Any) -> None:
        stage = self._stage
        assert stage is not None  # the server waits for Started
        try:
            stream = stage.open(request)
        except StageError as error:
            self._send(Failed(number, error.code, error.message))
            return
        except Exception as error:
            logger.exception("stage %s cannot open a request", stage.name)
            cause = f"{type(error).__name__}: {error}"
            failure = stage_failed(stage.name, f"{stage.name}_failed", cause)
            self._send(Failed(number, failure.code, failure.message))
            return
        carried = CarriedStream(stage.name, number, stream, self._output_window, self._send)
        task = self._tasks.create_task(carried.run(), name=f"{stage.name}-request")
        self._streams[number] = carried, task
        task.add_done_callback(lambda task: self._on_end(carried, task))

    def _abort(self, number: int) -> None:
        if number in self._streams:
            carried, task = self._streams[number]
            carried.abort()
            task.cancel()

    def _on_end(self, carried: CarriedStream, task: asyncio.Task[StageError | None]) -> None:
        del self._streams[carried.number]
        error = None if task.cancelled() else task.result()
        if carried.aborted:
            self._dying.append(carried.number)
            if self._reaping is not None:
                self._reaping.cancel()  # it may have grown slow
            self._reap(REAP_FIRST_S)
        elif error is not None:
            self._send(Failed(carried.number, error.code, error.message))
        else:
            self._send(Ended(carried.number))

    def _reap(self, again_s: float) -> None:
        """Tell the server of aborted requests once the stage has freed what they held.

        A stage tells how many requests it has, not which: those that died first are gone first.
        """
        self._reaping = None
        assert self._stage is not None
        # Read first: of a request that ends in between one too many is left, never one too few.
        active = self._stage.active
        carried = sum(not carried.is_reaped for carried, _ in self._streams.values())
        left = max(0, active - carried)
        while len(self._dying) > left:
            self._send(Ended(self._dying.popleft()))
        if self._dying:
            longer_s = min(2 * again_s, REAP_LONGEST_S)
            self._reaping = self._loop.call_later(again_s, self._reap, longer_s)


def _begin_log(start: Start) -> None:
    logging.basicConfig(level=start.log_level, format=LOG_FORMAT.format(stage=start.stage))
    logging.getLogger(CHATTY).setLevel(max(start.log_level, logging.WARNING))


def _build(start: Start) -> AnyStage:
    module, _, function = start.factory.partition(":")
    make = getattr(importlib.import_module(module), function)
    return cast("AnyStage", make(**start.arguments))
