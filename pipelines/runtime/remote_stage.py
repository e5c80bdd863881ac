"""Stages in a process of their own, which may crash without taking the server along."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from pipelines.ports import Capacity, Progress, StageStats
from pipelines.runtime.failures import stage_closed, stage_failed
from pipelines.runtime.latency import AbortLatency, plain_stats
from pipelines.runtime.message_codec import STAGE_CODEC, MessageError
from pipelines.runtime.messages import (
    Abort,
    Ended,
    Failed,
    FromWorker,
    Loading,
    Output,
    Pong,
    Start,
    Started,
    Taken,
    ToWorker,
)
from pipelines.runtime.remote_stream import RemoteStream
from pipelines.runtime.ticket import StageRequest
from pipelines.runtime.worker_failures import (
    rebuilt_failure,
    worker_crashed,
    worker_given_up,
    worker_not_started,
    worker_restarting,
)
from pipelines.runtime.worker_health import WorkerHealth
from pipelines.runtime.worker_link import WorkerEnd, WorkerLink
from pipelines.runtime.worker_options import WorkerOptions
from pipelines.types import StageError

Request = TypeVar("Request", bound=StageRequest)
In = TypeVar("In")
Out = TypeVar("Out")

logger = logging.getLogger(__name__)


class ProcessStage(Generic[Request, In, Out]):
    """A stage (`pipelines.ports.Stage`) that `factory` makes in a worker process.

    factory: "package.module:function", importable in the worker.
    arguments: what it is called with: texts, numbers, lists, tuples and dictionaries of them, and
        the dataclasses of `pipelines.types`.

    A worker that crashes or hangs fails the requests that it has, and is restarted with growing
    pauses; requests that come meanwhile wait for it for `restart_wait_s`. The first start is tried
    once, so that a wrong configuration shows at once.
    """

    def __init__(
        self,
        name: str,
        factory: str,
        arguments: Mapping[str, object] | None = None,
        options: WorkerOptions | None = None,
    ) -> None:
        """Raises ValueError for a factory that names none, or arguments that cannot travel."""
        module, _, function = factory.partition(":")
        if not all(part.isidentifier() for part in [*module.split("."), function]):
            raise ValueError(
                f"stage {name}: {factory!r} is not of the form package.module:function"
            )
        self._name = name
        self._factory = factory
        self._arguments = dict(arguments or {})
        self._options = options or WorkerOptions()
        STAGE_CODEC.encode(self._start_message())
        self._tasks: asyncio.TaskGroup | None = None
        self._link: WorkerLink | None = None
        self._streams: dict[int, RemoteStream[In, Out]] = {}
        self._numbers = itertools.count()  # never begun anew: late messages find nobody
        self._closed = False
        self._closing = asyncio.Event()
        self._next_start_s = 0.0  # on the loop's clock
        self._health = WorkerHealth(name, self._options.restart_wait_s)
        self.abort_latency = AbortLatency()
        self.restarts = 0
        self._told = Pong(None)  # the last of this worker, of the stage as it was there
        self._load_s: float | None = None  # the shortest that a worker took

    @property
    def name(self) -> str:
        return self._name

    @property
    def active(self) -> int:
        return len(self._streams)

    @property
    def stats(self) -> StageStats:
        """What the worker told last, a heartbeat ago at most; requests are those seen from here."""
        seen = plain_stats(self._name, self.active, self.abort_latency)
        return replace(
            self._told.stats or seen,
            name=seen.name,
            active=seen.active,
            aborts=seen.aborts,
            last_abort_ms=seen.last_abort_ms,
            worst_abort_ms=seen.worst_abort_ms,
            capacity=self.capacity,
            state=self._state,
            restarts=self.restarts,
            failure=self.failure,
        )

    @property
    def _state(self) -> str:
        link = self._link
        is_serving = link is not None and link.is_serving
        return self._health.state(is_serving, link is not None and link.is_silent)

    @property
    def capacity(self) -> Capacity | None:
        """As the worker measured it; nobody can be served once the stage is given up."""
        if self._health.is_given_up:
            return Capacity(0.0, 0.0, 0.0)
        return None if self._told.stats is None else self._told.stats.capacity

    @property
    def pid(self) -> int | None:
        """The worker's, while there is one."""
        return None if self._link is None else self._link.pid

    @property
    def failure(self) -> str | None:
        """Why the stage cannot serve, for whoever runs the server; None while it does, or is to be
        back in a moment."""
        if self._tasks is None:
            return None
        return self._health.failure(asyncio.get_running_loop().time())

    async def start(self, progress: Progress) -> None:
        """Start the worker and wait until its stage has loaded; what that raises passes through."""
        if self._tasks is not None or self._closed:
            raise RuntimeError(f"stage {self._name} can be started once")
        first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The group is left in `close`. Its only task never raises, so it never cancels anybody.
        self._tasks = await asyncio.TaskGroup().__aenter__()
        self._tasks.create_task(self._supervise(first, progress), name=f"{self._name}-worker")
        try:
            await first
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Abort every request and end the worker, by force if it does not end by itself, or `kill`
        is called meanwhile."""
        self._closed = True
        self._closing.set()
        for stream in list(self._streams.values()):
            stream.abort()
        if self._link is not None:
            await self._link.stop()
        if self._tasks is not None:
            tasks, self._tasks = self._tasks, None
            await tasks.__aexit__(None, None, None)

    def kill(self) -> None:
        """End the worker now, whatever it does; for a `close` that takes too long."""
        if self._link is not None:
            self._link.kill()

    def open(self, request: Request) -> RemoteStream[In, Out]:
        """Raises RuntimeError before `start`."""
        if self._tasks is None and not self._closed:
            raise RuntimeError(f"stage {self._name} is used before it was started")
        options = self._options
        stream: RemoteStream[In, Out] = RemoteStream(
            self._name, next(self._numbers), request, options.input_window, options.output_window
        )
        if self._closed:
            stream.end(stage_closed(self._name))
            return stream
        if self._health.is_given_up:
            stream.end(worker_given_up(self._name))
            return stream
        self._streams[stream.number] = stream
        stream.ticket.on_abort(lambda: self._on_abort(stream))
        if self._link is not None and self._link.is_serving:
            self._attach(stream, self._link)
        else:
            self._wait_for_worker(stream)
        return stream

    # ---- the worker's lives ------------------------------------------------------------------

    async def _supervise(self, first: asyncio.Future[None], progress: Progress) -> None:
        try:
            await self._live(first, progress)
        except Exception as error:
            logger.exception("stage %s can no longer be served", self._name)
            self._health.give_up(f"cannot be watched ({error!r})")
        finally:
            self._fail(lambda _: stage_closed(self._name))
            if not first.done():
                first.set_exception(stage_closed(self._name))
                first.exception()  # whoever waited may be gone

    async def _live(self, first: asyncio.Future[None], progress: Progress) -> None:
        short_lives = 0
        failed_starts = 0
        while not self._closed:
            self._link = WorkerLink(
                self._start_message(),
                self._options,
                lambda message: self._receive(message, first, progress),
            )
            end = await self._link.run()
            served_s = self._served_s(self._link)
            self._link = None
            if self._closed:
                return
            if not first.done():
                first.set_exception(self._start_error(end))
                return
            failed_starts = failed_starts + 1 if served_s is None else 0
            short_lives = 0 if (served_s or 0) >= self._options.stable_s else short_lives + 1
            self._bury(end, failed_starts)
            if self._health.is_given_up:
                return
            await self._pause(short_lives)
            self.restarts += 1

    def _start_message(self) -> Start:
        return Start(
            stage=self._name,
            factory=self._factory,
            arguments=self._arguments,
            import_path=tuple(sys.path),
            log_level=logging.getLogger().getEffectiveLevel(),
            output_window=self._options.output_window,
        )

    def _served_s(self, link: WorkerLink) -> float | None:
        """For how long it served; None if it never did."""
        if link.started_at_s is None:
            return None
        return asyncio.get_running_loop().time() - link.started_at_s

    def _start_error(self, end: WorkerEnd) -> Exception:
        if end.failure is not None:
            return rebuilt_failure(self._name, end.failure)
        return worker_not_started(self._name, end.cause)

    def _bury(self, end: WorkerEnd, failed_starts: int) -> None:
        """Fail the requests that the worker had, and, if it cannot even be started, all."""
        self._told = Pong(None)
        logger.error("the process of stage %s %s", self._name, end.cause)
        self._health.lose(end.cause, failed_starts, asyncio.get_running_loop().time())
        if failed_starts >= self._options.failed_starts:
            attempts = f"{failed_starts} attempts to restart it have failed"
            self._health.give_up(f"{end.cause} ({attempts})")
            logger.error("stage %s is out of service: %s", self._name, attempts)

        # Each gets an error of its own: what is raised collects where it was raised.
        def error_of(stream: RemoteStream[In, Out]) -> StageError | None:
            if stream.attached:
                return worker_crashed(self._name, end.cause)
            return worker_given_up(self._name) if self._health.is_given_up else None

        self._fail(error_of)

    async def _pause(self, short_lives: int) -> None:
        longest_s = self._options.longest_backoff_s
        # The exponent is bounded, or a stage that fails for days would overflow a float.
        pause_s = self._options.first_backoff_s * 2 ** min(max(short_lives - 1, 0), 16)
        pause_s = min(pause_s, longest_s)
        self._next_start_s = asyncio.get_running_loop().time() + pause_s
        logger.warning("stage %s is restarted in %g s", self._name, pause_s)
        try:
            async with asyncio.timeout(pause_s):
                await self._closing.wait()
        except TimeoutError:
            pass

    # ---- streams -----------------------------------------------------------------------------

    def _receive(
        self, message: FromWorker, first: asyncio.Future[None], progress: Progress
    ) -> None:
        match message:
            case Output(number, value):
                if number in self._streams:
                    self._streams[number].put(cast("Any", value))
            case Taken(number, inputs):
                if number in self._streams:
                    self._streams[number].allow(inputs)
            case Ended(number):
                self._reap(number, None)
            case Failed(number, code, text):
                self._reap(number, StageError(code, text))
            case Pong():
                self._told = message
            case Loading(line):
                if first.done():
                    logger.info("stage %s is restarted: %s", self._name, line)
                else:
                    self._report(line, progress)
            case Started():
                self._on_started(first)
            case _:
                pass

    def _report(self, line: str, progress: Progress) -> None:
        try:
            progress(line)
        except Exception:
            logger.exception("stage %s: its progress cannot be shown: %s", self._name, line)

    def _on_started(self, first: asyncio.Future[None]) -> None:
        if not first.done():
            first.set_result(None)
        assert self._link is not None and self._link.started_at_s is not None
        self._health.serve()
        load_s = self._link.started_at_s - self._link.born_at_s
        self._load_s = min(load_s, self._load_s or load_s)
        for stream in list(self._streams.values()):
            self._attach(stream, self._link)

    def _attach(self, stream: RemoteStream[In, Out], link: WorkerLink) -> None:
        def send(message: ToWorker) -> None:
            try:
                link.send(message)
            except MessageError as error:
                self._refuse(stream, link, error)

        stream.attach(send)

    def _refuse(self, stream: RemoteStream[In, Out], link: WorkerLink, error: MessageError) -> None:
        """What the owner gave cannot be told to the worker, which may know of the request."""
        self._streams.pop(stream.number, None)
        stream.end(stage_failed(self._name, f"{self._name}_failed", str(error)))
        link.send(Abort(stream.number))

    def _on_abort(self, stream: RemoteStream[In, Out]) -> None:
        # One that the worker knows stays until the worker has freed all that it holds.
        if not stream.attached:
            self._reap(stream.number, None)

    def _wait_for_worker(self, stream: RemoteStream[In, Out]) -> None:
        loop = asyncio.get_running_loop()
        wait_s = self._options.restart_wait_s
        born_at_s = self._next_start_s if self._link is None else self._link.born_at_s
        # At best: whoever cannot be served in time need not wait to hear it.
        ready_at_s = born_at_s + (self._load_s or 0.0)
        if ready_at_s - loop.time() > wait_s:
            self._give_up_waiting(stream)
        else:
            loop.call_later(wait_s, self._give_up_waiting, stream)

    def _give_up_waiting(self, stream: RemoteStream[In, Out]) -> None:
        if not stream.attached:
            self._reap(stream.number, worker_restarting(self._name))

    def _fail(self, error_of: Callable[[RemoteStream[In, Out]], StageError | None]) -> None:
        for stream in list(self._streams.values()):
            error = error_of(stream)
            if error is not None:
                self._reap(stream.number, error)

    def _reap(self, number: int, error: StageError | None) -> None:
        stream = self._streams.pop(number, None)
        if stream is not None:
            self.abort_latency.record(stream.ticket)
            stream.end(error)
