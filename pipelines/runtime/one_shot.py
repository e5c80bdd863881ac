"""One-shot stages: a call per input, such as a recogniser, or a voice that speaks clauses."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pipelines.ports import Progress, StageStats
from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.crew import Crew
from pipelines.runtime.failures import input_too_long, stage_closed
from pipelines.runtime.handover import on_loop
from pipelines.runtime.inbox import Inbox
from pipelines.runtime.latency import AbortLatency, plain_stats
from pipelines.runtime.lead import Cushion, Lead
from pipelines.runtime.outlet import STALL_TIMEOUT_MS, Outlet
from pipelines.runtime.ticket import StageRequest, Ticket
from pipelines.types import StageError, Urgency

Request = TypeVar("Request", bound=StageRequest)
In = TypeVar("In")
Out = TypeVar("Out")
Model = TypeVar("Model")

Run = Callable[[Any, Ticket], Iterable[Out]]  # one input, or all of them as a list

OUTPUT_LIMIT = 8  # outputs: a stalled reader costs a few seconds of audio per request, no more
INPUT_LIMIT = 64  # inputs that wait: a long reply in clauses; the writer is paused beyond
GATHER_LIMIT = 65_536  # inputs gathered for one run: half an hour in frames of 32 ms


@dataclass(frozen=True, slots=True)
class Previews:
    """What a gathering stage makes of the inputs so far, before it has them all.

    run: (model, request, inputs so far, ticket) to outputs. weigh: what one input counts.
    every: a preview is made whenever inputs of so much have come; None: this request wants none.
    """

    run: Callable[[Any, Any, Any, Ticket], Iterable[Any]]
    weigh: Callable[[Any], int]
    every: Callable[[Any], int | None]


class OneShotStage(Generic[Request, In, Out]):
    """Calls a blocking `run(model, request, input, ticket)` in the stage's own thread.

    load: makes and warms the model, in a thread.
    run: yields the outputs of one input. It runs under the token of `cpu` from one output to the
        next; between two outputs other requests may run, so what a request needs lives in the
        generator, not in the model. Long steps call `cpu.give_way(ticket)` between quanta.
        An abort closes the generator before its next step.
    gather: False: one run per pushed input, in order. True: the inputs are collected, and `run`
        gets them as a list, once, after finish.
    previews: of a gathering stage, outputs before finish.
    lead: of a voice: a request with enough unread seconds of audio is not run; and one that was
        opened for a listener goes before its equals while what it made hardly lasts any longer.

    clock_s: monotone, of what listeners have heard.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[Progress], Model],
        run: Callable[[Model, Request, Any, Ticket], Iterable[Out]],
        cpu: CpuToken | None,
        gather: bool = False,
        *,
        threads: int = 1,
        output_limit: int = OUTPUT_LIMIT,
        input_limit: int = INPUT_LIMIT,
        stall_timeout_ms: int = STALL_TIMEOUT_MS,
        failure_code: str | None = None,
        previews: Previews | None = None,
        lead: Lead[Out] | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lead = lead
        self._clock_s = clock_s
        self._gather = gather
        self._previews = previews
        self._output_limit = output_limit
        self._input_limit = GATHER_LIMIT if gather else input_limit
        self._stall_timeout_ms = stall_timeout_ms
        self._crew = Crew(name, cpu, threads, failure_code or f"{name}_failed")
        self._bound: Callable[[Request, bool], Run[Out]] | None = None
        self._closed = False

        def bind(progress: Progress) -> Callable[[Request, bool], Run[Out]]:
            model = load(progress)

            def choose(request: Request, is_preview: bool) -> Run[Out]:
                chosen = previews.run if previews is not None and is_preview else run
                return lambda item, ticket: chosen(model, request, item, ticket)

            return choose

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

    def open(self, request: Request) -> OneShotStream[In, Out]:
        """Raises RuntimeError before `start`."""
        if self._bound is None and not self._closed:
            raise RuntimeError(f"stage {self.name} is used before it was started")
        ticket = Ticket.of(request)
        bound = self._bound

        previews = self._previews

        def run(item: Any, ticket: Ticket) -> Iterable[Out]:
            assert bound is not None
            return bound(request, False)(item, ticket)

        def preview(item: Any, ticket: Ticket) -> Iterable[Out]:
            assert bound is not None
            return bound(request, True)(item, ticket)

        stream: OneShotStream[In, Out] = OneShotStream(
            self._crew,
            ticket,
            run,
            gather=self._gather,
            preview=preview,
            weigh=previews.weigh if previews is not None else None,
            preview_every=previews.every(request) if previews is not None else None,
            input_limit=self._input_limit,
            output_limit=self._output_limit,
            stall_timeout_ms=self._stall_timeout_ms,
            lead=self._lead,
            clock_s=self._clock_s,
        )
        if self._closed:
            stream.end(stage_closed(self.name))
        else:
            self._crew.add(stream)
        return stream


class OneShotStream(Generic[In, Out]):
    """One request of a one-shot stage (`pipelines.ports.Stream`), and its job in the crew."""

    def __init__(
        self,
        crew: Crew,
        ticket: Ticket,
        run: Run[Out],
        *,
        gather: bool,
        preview: Run[Out],
        weigh: Callable[[In], int] | None,
        preview_every: int | None,
        input_limit: int,
        output_limit: int,
        stall_timeout_ms: int,
        lead: Lead[Out] | None,
        clock_s: Callable[[], float],
    ) -> None:
        self._crew = crew
        self._ticket = ticket
        self._run = run
        self._gather = gather
        self._preview = preview
        self._weigh = weigh
        self._preview_every = preview_every
        self._input_limit = input_limit
        self._gathered: list[In] = []
        self._is_final = False  # whether the run over all gathered inputs has begun
        # Written on the loop and in the thread, each by one alone: their difference needs no lock.
        self._pushed_weight = 0
        self._previewed_weight = 0
        self._inbox: Inbox[In] = Inbox(input_limit)
        self._outlet: Outlet[Out] = Outlet(
            crew.name, ticket, output_limit, crew.wake, stall_timeout_ms, lead
        )
        self._current: Iterator[Out] | None = None
        self._clock_s = clock_s
        # Who asks for a file from the start hears nothing of it before its end.
        is_heard = lead is not None and ticket.urgency is not Urgency.STEADY
        self._cushion = Cushion() if is_heard else None
        self._enough_s = 0.0 if lead is None else lead.limit_s
        ticket.on_abort(self._inbox.shut)

    # ---- the owner's side, on the loop -------------------------------------------------------

    async def push(self, item: In) -> None:
        count = len(self._inbox) + len(self._gathered)
        if self._gather and count >= self._input_limit and self._inbox.accepts:
            # What is gathered stays until finish, so waiting would never end.
            self._crew.discard(self)
            self.end(input_too_long(self._crew.name, count))
        if not await self._inbox.put(item):
            return
        if not self._gather:
            self._outlet.owe(True)
            self._crew.wake()
        elif self._weigh is not None and self._preview_every is not None:
            self._pushed_weight += self._weigh(item)
            self._crew.wake()

    async def finish(self) -> None:
        if not self._inbox.accepts:
            return
        self._inbox.finish()
        needs_work = self._gather or len(self._inbox) > 0 or self._current is not None
        if not needs_work and self._crew.discard(self):
            self.end(None)
            return
        self._outlet.owe(True)
        self._crew.wake()

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
        if not self._outlet.has_room:
            return False
        if self._gather:
            return self._current is not None or self._inbox.finished or self._is_preview_due
        return self._current is not None or len(self._inbox) > 0 or self._inbox.finished

    @property
    def holds_work(self) -> bool:
        return self._current is not None

    @property
    def runs_dry(self) -> bool:
        cushion = self._cushion
        return cushion is not None and cushion.left_s(self._clock_s()) < self._enough_s

    def work(self) -> bool:
        if self._current is None and not self._begin():
            return True
        assert self._current is not None
        for output in self._current:
            self._ticket.check()
            self._outlet.put(output)
            if self._cushion is not None:
                self._cushion.add(self._outlet.weigh(output), self._clock_s())
            if not self._outlet.has_room or self._crew.is_turn_over(self):
                return False
        self._current = None
        is_last = self._is_final if self._gather else self._inbox.finished
        if is_last and not len(self._inbox):
            return True
        self._outlet.owe(False)
        if len(self._inbox) or self._inbox.finished:  # also what came since the line above
            self._outlet.owe(True)
        return False

    def dispose(self) -> None:
        current, self._current = self._current, None
        close = getattr(current, "close", None)
        if close is not None:
            close()

    def end(self, error: StageError | None) -> None:
        self._inbox.shut()
        self._outlet.end(error)

    @property
    def _is_preview_due(self) -> bool:
        every = self._preview_every
        return every is not None and self._pushed_weight - self._previewed_weight >= every

    def _begin(self) -> bool:
        if self._gather:
            return self._begin_gathered()
        if not len(self._inbox):
            return False
        self._current = iter(self._run(self._inbox.take(), self._ticket))
        return True

    def _begin_gathered(self) -> bool:
        # Read first: what comes in between belongs to the next run.
        finished, weight = self._inbox.finished, self._pushed_weight
        self._gathered += self._inbox.take_all()
        self._previewed_weight = weight
        self._is_final = finished
        run = self._run if finished else self._preview
        self._current = iter(run(list(self._gathered), self._ticket))
        return True
