"""Stages whose requests are tasks on the event loop: the ground of remote stages and of replies."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeVar

from pipelines.ports import Progress, StageStats
from pipelines.runtime.failures import input_too_long, stage_closed, stage_failed
from pipelines.runtime.latency import AbortLatency, plain_stats
from pipelines.runtime.lead import Lead
from pipelines.runtime.outlet import STALL_TIMEOUT_MS, Outlet
from pipelines.runtime.ticket import Aborted, StageRequest, Ticket
from pipelines.types import StageError, Urgency

Request = TypeVar("Request", bound=StageRequest)
In = TypeVar("In")
Out = TypeVar("Out")

logger = logging.getLogger(__name__)

OUTPUT_LIMIT = 64  # outputs: enough that a reader's short pause does not stop a remote stream
INPUT_LIMIT = 65_536  # inputs: half an hour of audio in frames of 32 ms


class LoopStage(Generic[Request, In, Out]):
    """Runs the coroutine `work(request, stream)` in a task per request.

    work: reads `stream.inputs()` and hands outputs over with `await stream.emit(output)`. An abort
        cancels its task, so it frees what it holds in `finally` or `async with`.
    lead: how many seconds of audio may wait for a request's reader.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Request, LoopStream[In, Out]], Awaitable[None]],
        *,
        output_limit: int = OUTPUT_LIMIT,
        stall_timeout_ms: int = STALL_TIMEOUT_MS,
        failure_code: str | None = None,
        lead: Lead[Out] | None = None,
    ) -> None:
        self._name = name
        self._lead = lead
        self._work = work
        self._output_limit = output_limit
        self._stall_timeout_ms = stall_timeout_ms
        self._failure_code = failure_code or f"{name}_failed"
        self._tasks: asyncio.TaskGroup | None = None
        self._streams: set[LoopStream[In, Out]] = set()
        self._closed = False
        self.abort_latency = AbortLatency()

    @property
    def name(self) -> str:
        return self._name

    @property
    def active(self) -> int:
        return len(self._streams)

    @property
    def stats(self) -> StageStats:
        return plain_stats(self.name, self.active, self.abort_latency)

    @property
    def capacity(self) -> None:
        """Not measured."""

    async def start(self, progress: Progress) -> None:
        # The group is left in `close`. No task of it ever raises, so it never cancels anybody.
        self._tasks = await asyncio.TaskGroup().__aenter__()

    async def close(self) -> None:
        """Abort every request and wait until its task has ended."""
        self._closed = True
        for stream in list(self._streams):
            stream.abort()
        if self._tasks is not None:
            tasks, self._tasks = self._tasks, None
            await tasks.__aexit__(None, None, None)

    def open(self, request: Request) -> LoopStream[In, Out]:
        """The request starts at once. Raises RuntimeError before `start`."""
        if self._tasks is None and not self._closed:
            raise RuntimeError(f"stage {self._name} is used before it was started")
        stream: LoopStream[In, Out] = LoopStream(
            self._name, Ticket.of(request), self._output_limit, self._stall_timeout_ms, self._lead
        )
        if self._tasks is None:
            stream.end(stage_closed(self._name))
            return stream
        self._streams.add(stream)
        task = self._tasks.create_task(self._run(request, stream), name=f"{self._name}-request")
        # A callback also comes when the task is cancelled before its first step.
        task.add_done_callback(lambda task: self._reap(stream, task))
        stream.ticket.on_abort(task.cancel)
        return stream

    async def _run(self, request: Request, stream: LoopStream[In, Out]) -> StageError | None:
        try:
            await self._work(request, stream)
        except Aborted:
            cause = "it gave up the request without being asked to"
        except StageError as error:
            return error
        except Exception as error:
            logger.exception("stage %s failed on %s", self._name, stream.ticket.request_id)
            cause = f"{type(error).__name__}: {error}"
        else:
            return None
        return stage_failed(self._name, self._failure_code, cause)

    def _reap(self, stream: LoopStream[In, Out], task: asyncio.Task[StageError | None]) -> None:
        self._streams.discard(stream)
        self.abort_latency.record(stream.ticket)
        # The owner hears of the end when nothing is left of the request.
        stream.end(None if task.cancelled() else task.result())


class LoopStream(Generic[In, Out]):
    """One request of a stage on the loop (`pipelines.ports.Stream`)."""

    def __init__(
        self,
        stage: str,
        ticket: Ticket,
        output_limit: int,
        stall_timeout_ms: int,
        lead: Lead[Out] | None = None,
    ) -> None:
        self.ticket = ticket
        self._stage = stage
        self._room = asyncio.Event()
        self._arrived = asyncio.Event()
        self._inputs: deque[In] = deque()
        self._finished = False
        self._overflown = False
        self._is_held = False
        self._owes = True
        self.is_reaped = False  # its task has ended
        self._outlet: Outlet[Out] = Outlet(
            stage, ticket, output_limit, self._room.set, stall_timeout_ms, lead
        )
        self._owe(True)

    # ---- the owner's side --------------------------------------------------------------------

    async def push(self, item: In) -> None:
        if self._finished or self.ticket.aborted:
            return
        # Some stages take nothing before finish, so waiting here might never end.
        self._overflown = self._overflown or len(self._inputs) >= INPUT_LIMIT
        if not self._overflown:
            self._inputs.append(item)
        self._arrived.set()

    async def finish(self) -> None:
        self._finished = True
        self._arrived.set()

    def __aiter__(self) -> AsyncIterator[Out]:
        return self

    async def __anext__(self) -> Out:
        return await self._outlet.next()

    def abort(self) -> None:
        self.ticket.abort()

    def hurry(self, urgency: Urgency) -> None:
        self.ticket.hurry(urgency)

    def hold_speech(self, is_held: bool) -> None:
        """While held, outputs that have a length wait where they are made; the others come."""
        self._is_held = is_held
        # Whoever is told to wait owes nothing meanwhile.
        self._owe(self._owes)
        self._room.set()

    # ---- the stage's side --------------------------------------------------------------------

    def inputs(self) -> AsyncIterator[In]:
        """What is pushed, until finish. While this waits, the stage owes nothing."""
        return _Inputs(self)

    async def next_input(self) -> In:
        while True:
            if self._overflown:
                raise input_too_long(self._stage, INPUT_LIMIT)
            if self._inputs:
                self._owe(True)
                return self._inputs.popleft()
            if self._finished:
                self._owe(True)
                raise StopAsyncIteration
            self._owe(False)
            self._arrived.clear()
            await self._arrived.wait()

    async def emit(self, output: Out) -> None:
        """Hand an output over, once the reader has room for it. Raises Aborted."""
        self.ticket.check()
        while not self._has_room_for(output):
            self._room.clear()
            await self._room.wait()
        self._outlet.put(output)

    def end(self, error: StageError | None = None) -> None:
        self.is_reaped = True
        self._outlet.end(error)

    def _has_room_for(self, output: Out) -> bool:
        if self._is_held and self._outlet.weigh(output) > 0:
            return False
        return self._outlet.has_room_for(output)

    def _owe(self, owes: bool) -> None:
        self._owes = owes
        self._outlet.owe(owes and not self._is_held)


class _Inputs(Generic[In]):
    """An iterator without a frame of its own, so that nobody needs to close it."""

    def __init__(self, stream: LoopStream[In, Any]) -> None:
        self._stream = stream

    def __aiter__(self) -> AsyncIterator[In]:
        return self

    async def __anext__(self) -> In:
        return await self._stream.next_input()
