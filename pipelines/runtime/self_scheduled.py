"""Self-scheduled stages: engines that run a whole request by themselves, in a thread."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from pipelines.ports import Progress, StageStats
from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.crew import Crew
from pipelines.runtime.failures import reader_stalled, stage_closed
from pipelines.runtime.handover import on_loop
from pipelines.runtime.latency import AbortLatency, plain_stats
from pipelines.runtime.outlet import STALL_TIMEOUT_MS, Outlet
from pipelines.runtime.ticket import StageRequest, Ticket
from pipelines.types import StageError, Urgency

Request = TypeVar("Request", bound=StageRequest)
Out = TypeVar("Out")
Model = TypeVar("Model")

Emit = Callable[[Out], None]

OUTPUT_LIMIT = 512  # outputs: a whole spoken reply in tokens, so a slow reader rarely stops a model
READER_TIMEOUT_MS = 30_000  # a reader that takes nothing for so long keeps others from the model


class SelfScheduledStage(Generic[Request, Out]):
    """Runs a blocking `run(model, request, ticket, emit)` per request.

    load: makes and warms the model, in a thread.
    run: works under the token of `cpu`, if there is one, and hands outputs over with `emit`, from
        any thread. `emit` gives way to whoever is more urgent, waits while the reader has enough
        (without the token), and raises Aborted when the request is dead. Between two outputs, for
        instance during a prefill, `run` polls `ticket.aborted` or registers `ticket.on_abort`.
    threads: how many requests may run at once.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[Progress], Model],
        run: Callable[[Model, Request, Ticket, Emit[Out]], None],
        cpu: CpuToken | None,
        *,
        threads: int = 1,
        output_limit: int = OUTPUT_LIMIT,
        stall_timeout_ms: int = STALL_TIMEOUT_MS,
        reader_timeout_ms: int = READER_TIMEOUT_MS,
        failure_code: str | None = None,
    ) -> None:
        self._output_limit = output_limit
        self._stall_timeout_ms = stall_timeout_ms
        self._reader_timeout_ms = reader_timeout_ms
        self._crew = Crew(name, cpu, threads, failure_code or f"{name}_failed")
        self._bound: Callable[[Request, Ticket, Emit[Out]], None] | None = None
        self._closed = False

        def bind(progress: Progress) -> Callable[[Request, Ticket, Emit[Out]], None]:
            model = load(progress)
            return lambda request, ticket, emit: run(model, request, ticket, emit)

        self._bind = bind

    @property
    def name(self) -> str:
        return self._crew.name

    @property
    def active(self) -> int:
        return self._crew.active

    @property
    def abort_latency(self) -> AbortLatency:
        return self._crew.abort_latency

    @property
    def stats(self) -> StageStats:
        return plain_stats(self.name, self.active, self.abort_latency)

    @property
    def capacity(self) -> None:
        """Not measured."""

    async def start(self, progress: Progress) -> None:
        """Load the model; what `load` raises passes through."""
        hop = on_loop(progress)

        def prepare() -> None:
            self._bound = self._bind(hop)

        await self._crew.start(prepare)

    async def close(self) -> None:
        self._closed = True
        await self._crew.close()
        self._bound = None

    def open(self, request: Request) -> SelfScheduledStream[Out]:
        """The request starts at once. Raises RuntimeError before `start`."""
        if self._bound is None and not self._closed:
            raise RuntimeError(f"stage {self.name} is used before it was started")
        bound = self._bound

        def run(ticket: Ticket, emit: Emit[Out]) -> None:
            assert bound is not None
            bound(request, ticket, emit)

        stream: SelfScheduledStream[Out] = SelfScheduledStream(
            self._crew,
            Ticket.of(request),
            run,
            output_limit=self._output_limit,
            stall_timeout_ms=self._stall_timeout_ms,
            reader_timeout_ms=self._reader_timeout_ms,
        )
        if self._closed:
            stream.end(stage_closed(self.name))
        else:
            self._crew.add(stream)
            self._crew.wake()
        return stream


class SelfScheduledStream(Generic[Out]):
    """One request (`pipelines.ports.Stream`; it takes no input), and its job in the crew."""

    def __init__(
        self,
        crew: Crew,
        ticket: Ticket,
        run: Callable[[Ticket, Emit[Out]], None],
        *,
        output_limit: int,
        stall_timeout_ms: int,
        reader_timeout_ms: int,
    ) -> None:
        self._crew = crew
        self._ticket = ticket
        self._run = run
        self._reader_timeout_s = reader_timeout_ms / 1000
        self._started = False
        self._room = threading.Event()
        self._outlet: Outlet[Out] = Outlet(
            crew.name, ticket, output_limit, self._room.set, stall_timeout_ms
        )
        ticket.on_abort(self._room.set)
        self._outlet.owe(True)

    # ---- the owner's side, on the loop -------------------------------------------------------

    async def push(self, item: None) -> None:
        """Everything is in the request; this stage takes no input."""

    async def finish(self) -> None:
        """Everything is in the request; nothing changes."""

    def __aiter__(self) -> AsyncIterator[Out]:
        return self

    async def __anext__(self) -> Out:
        return await self._outlet.next()

    def abort(self) -> None:
        self._ticket.abort()

    def hurry(self, urgency: Urgency) -> None:
        self._ticket.hurry(urgency)

    @property
    def is_reaped(self) -> bool:
        """Whether nothing of it is left in the stage."""
        return not self._crew.has(self)

    # ---- the crew's side ---------------------------------------------------------------------

    @property
    def ticket(self) -> Ticket:
        return self._ticket

    @property
    def ready(self) -> bool:
        return not self._started

    @property
    def holds_work(self) -> bool:
        return False

    @property
    def runs_dry(self) -> bool:
        return False  # text has no length in seconds

    def work(self) -> bool:
        self._started = True
        self._run(self._ticket, self._emit)
        return True

    def dispose(self) -> None:
        """`run` has ended, and with it all that it held."""

    def end(self, error: StageError | None) -> None:
        self._outlet.end(error)

    def _emit(self, output: Out) -> None:
        self._ticket.check()
        if not self._outlet.has_room:
            self._wait_for_reader()
        self._outlet.put(output)
        if self._crew.cpu is not None:
            self._crew.cpu.give_way(self._ticket)

    def _wait_for_reader(self) -> None:
        if self._crew.cpu is None:
            self._wait_for_room()
        else:
            with self._crew.cpu.lend(self._ticket):
                self._wait_for_room()
        self._ticket.check()

    def _wait_for_room(self) -> None:
        while not self._outlet.has_room and not self._ticket.aborted:
            self._room.clear()
            # The reader may have taken an output, or the abort come, before the flag was cleared.
            if self._outlet.has_room or self._ticket.aborted:
                return
            if not self._room.wait(self._reader_timeout_s):
                raise reader_stalled(self._crew.name, self._reader_timeout_s)
