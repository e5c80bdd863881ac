"""The scheduler of stepped models: who gets a slot, who is in the next step's batch."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from pipelines.ports import Capacity, Progress, StageStats
from pipelines.runtime.admission import evicted, first_waiting, rushers
from pipelines.runtime.batch import choose, urgency_of
from pipelines.runtime.capacity import CapacityMeter
from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.failures import draft_evicted, stage_closed, stage_failed
from pipelines.runtime.handover import on_loop
from pipelines.runtime.inbox import Inbox
from pipelines.runtime.latency import AbortLatency
from pipelines.runtime.lead import Lead
from pipelines.runtime.outlet import STALL_TIMEOUT_MS, Outlet
from pipelines.runtime.slots import SlotResult, SlotState, SteppedModel
from pipelines.runtime.stepped_stats import survey
from pipelines.runtime.stepped_stream import SteppedStream
from pipelines.runtime.threads import join, load_in_thread
from pipelines.runtime.ticket import StageRequest, Ticket
from pipelines.types import StageError, Urgency

Request = TypeVar("Request", bound=StageRequest)
In = TypeVar("In")
Out = TypeVar("Out")

logger = logging.getLogger(__name__)

OUTPUT_LIMIT = 32  # outputs of a stream that nobody takes; beyond, it leaves the batch
INPUT_LIMIT = 64  # inputs that wait for a slot or a step


class SteppedStage(Generic[Request, In, Out]):
    """Serves a `SteppedModel` from one thread, one step after the other.

    Before each step: dead requests leave their slots, the most urgent waiting requests take free
    ones, inputs are fed. The batch is every slot that is neither starved nor waiting for its
    reader; with `batch_limit`, only the most urgent of them. An exception in `step` fails the
    requests of that batch, for nobody knows whose fault it was.

    lead: of a stage that makes sound. A stream with enough unread seconds is paused: it keeps its
        slot and its state, and the steps go to others. Who has sounded and runs dry goes before
        who does not, and what the stage can deliver is measured.

    While requests wait for a slot, as many paused streams whose text is whole run on to their end,
    which frees theirs; not while somebody runs dry, and not beyond `Lead.most_s` unread seconds of
    each. What waits as more than a draft takes the slot of a draft at once, the latest that has
    not sounded, or else the latest: it ends with `draft_evicted`.

    clock_s: monotone, of what is measured.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[Progress], SteppedModel[Request, In, Out]],
        cpu: CpuToken | None,
        *,
        batch_limit: int | None = None,
        output_limit: int = OUTPUT_LIMIT,
        input_limit: int = INPUT_LIMIT,
        stall_timeout_ms: int = STALL_TIMEOUT_MS,
        failure_code: str | None = None,
        lead: Lead[Out] | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._load = load
        self._cpu = cpu
        self._batch_limit = batch_limit
        self._output_limit = output_limit
        self._input_limit = input_limit
        self._stall_timeout_ms = stall_timeout_ms
        self._failure_code = failure_code or f"{name}_failed"
        self._lead = lead
        self._dry_s = None if lead is None else lead.dry_s
        self._clock_s = clock_s
        self._model: SteppedModel[Request, In, Out] | None = None
        self._meter: CapacityMeter | None = None
        self._steps = 0
        self._changed = threading.Condition()
        self._streams: list[SteppedStream[Request, In, Out]] = []  # in order of arrival
        self._free: list[int] = []
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.abort_latency = AbortLatency()

    @property
    def name(self) -> str:
        return self._name

    @property
    def active(self) -> int:
        with self._changed:
            return len(self._streams)

    @property
    def capacity(self) -> Capacity | None:
        """None where outputs have no length, and until enough steps were seen."""
        with self._changed:
            return None if self._meter is None else self._meter.capacity(self._clock_s())

    @property
    def stats(self) -> StageStats:
        with self._changed:
            return survey(
                self._name,
                self._streams,
                len(self._free),
                self._meter,
                self.abort_latency,
                self._clock_s(),
                has_lead=self._lead is not None,
            )

    async def start(self, progress: Progress) -> None:
        """Load the model; what `load` raises passes through."""
        hop = on_loop(progress)

        def prepare() -> None:
            self._model = self._load(hop)
            self._free = list(range(self._model.slots))
            self._meter = CapacityMeter(self._model.slots, self._clock_s())

        await load_in_thread(self._name, prepare)
        self._thread.start()

    async def close(self) -> None:
        with self._changed:
            self._closing = True
            streams = list(self._streams)
            self._changed.notify()
        for stream in streams:
            stream.abort()
        if self._cpu is not None:
            self._cpu.reconsider()
        await asyncio.to_thread(join, [self._thread])
        self._model = None

    def open(self, request: Request) -> SteppedStream[Request, In, Out]:
        """Raises RuntimeError before `start`. Inputs wait until a slot is free."""
        if self._model is None and not self._closing:
            raise RuntimeError(f"stage {self._name} is used before it was started")
        ticket = Ticket.of(request)
        inbox: Inbox[In] = Inbox(self._input_limit)
        outlet: Outlet[Out] = Outlet(
            self._name, ticket, self._output_limit, self._wake, self._stall_timeout_ms, self._lead
        )
        stream = SteppedStream(request, inbox, outlet, self._wake, self._clock_s)
        if self._closing:
            stream.end(stage_closed(self._name))
            return stream
        with self._changed:
            self._streams.append(stream)
            self._changed.notify()  # a model may prepare before it is fed
        ticket.on_abort(lambda: self._on_abort(stream))
        return stream

    # ---- the claim on the token (pipelines.runtime.cpu.Claimant) -----------------------------

    def urgency(self) -> Urgency | None:
        with self._changed:
            batch = [] if self._closing or self._dead() else self._batch()
            return urgency_of(batch[0].standing, self._dry_s) if batch else None

    def take(self) -> Ticket | None:
        with self._changed:
            batch = [] if self._closing or self._dead() else self._batch()
            return batch[0].ticket if batch else None

    # ---- the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        model = self._model
        assert model is not None
        while self._wait_for_work():
            self._reap(model)
            self._admit(model)
            self._feed(model)
            if self._cpu is None:
                self._step(model)
                continue
            with self._cpu.hold_for(self) as ticket:
                if ticket is not None:
                    self._step(model)

    def _wait_for_work(self) -> bool:
        with self._changed:
            while True:
                if self._dead():
                    return True
                if self._closing and not self._streams:
                    return False
                if self._closing:
                    self._changed.wait()  # `close` is about to abort them all
                    continue
                if any(stream.hungry for stream in self._streams) or self._runnable():
                    return True
                waiting = first_waiting(self._streams)
                if waiting is not None and (self._free or evicted(self._streams, waiting)):
                    return True
                self._changed.wait(self._until_due_s())

    def _reap(self, model: SteppedModel[Request, In, Out]) -> None:
        with self._changed:
            dead = self._dead()
        for stream in dead:
            self._leave(model, stream)

    def _admit(self, model: SteppedModel[Request, In, Out]) -> None:
        while True:
            with self._changed:
                stream = first_waiting(self._streams)
                if stream is None:
                    return
                draft = None if self._free else evicted(self._streams, stream)
                if not self._free and draft is None:
                    return
                slot = self._free.pop() if draft is None else None
                if slot is not None:
                    stream.settle(slot)
            if draft is not None:
                self._fail(model, draft, draft_evicted(self._name))
            if slot is None:
                continue
            try:
                model.open(slot, stream.request)
                stream.go_on()  # what stands before the first input needs no input
            except Exception as error:
                self._fail(model, stream, error)

    def _feed(self, model: SteppedModel[Request, In, Out]) -> None:
        with self._changed:
            hungry = [stream for stream in self._streams if stream.hungry]
        for stream in hungry:
            assert stream.slot is not None
            try:
                # Read before the items: what comes after them belongs to the next feeding.
                finished = stream.inbox.finished
                for item in stream.inbox.take_all():
                    model.feed(stream.slot, item)
                if finished:
                    model.feed(stream.slot, None)
                    stream.fed_end = True
                stream.go_on()
            except Exception as error:
                self._fail(model, stream, error)

    def _step(self, model: SteppedModel[Request, In, Out]) -> None:
        with self._changed:
            batch = {stream.slot: stream for stream in self._batch() if stream.slot is not None}
            # Sound may come late from a device, for a stream that has been paused since.
            in_slots = {stream.slot: stream for stream in self._streams if stream.slot is not None}
        if not batch:
            return
        self._steps += 1
        for stream in batch.values():
            stream.last_step = self._steps
        began_s = self._clock_s()
        try:
            results = model.step(list(batch))
            if missing := batch.keys() - results.keys():
                raise RuntimeError(f"the step gave no result for slots {sorted(missing)}")
        except Exception as error:
            for stream in batch.values():
                self._fail(model, stream, error)
            return
        self._measure(len(batch), in_slots, results, began_s)
        for slot, result in results.items():
            if slot in in_slots:
                self._deliver(model, in_slots[slot], result)

    def _measure(
        self,
        streams: int,
        in_slots: Mapping[int, SteppedStream[Request, In, Out]],
        results: Mapping[int, SlotResult[Out]],
        began_s: float,
    ) -> None:
        if self._meter is None:
            return
        now_s = self._clock_s()
        audio_s = heard_s = 0.0
        if self._lead is not None:
            for slot, stream in in_slots.items():
                outputs = results[slot].outputs if slot in results else ()
                made_s = sum(map(self._lead.weigh, outputs))
                stream.listening.make(made_s, now_s)
                audio_s += made_s
                is_over = slot in results and stream.is_over(results[slot])
                heard_s += stream.listening.news_s(now_s, is_over=is_over)
        with self._changed:
            self._meter.record(streams, audio_s, heard_s, now_s - began_s, now_s)

    def _deliver(
        self,
        model: SteppedModel[Request, In, Out],
        stream: SteppedStream[Request, In, Out],
        result: SlotResult[Out],
    ) -> None:
        for output in result.outputs:
            stream.has_sounded = True
            stream.outlet.put(output)
        if result.error is not None:
            self._fail(model, stream, result.error)
            return
        if stream.is_over(result):
            self._leave(model, stream)
            stream.end()
        elif result.state is SlotState.STARVED:
            stream.starve(result.again_s)
        else:
            stream.go_on()

    def _fail(
        self,
        model: SteppedModel[Request, In, Out],
        stream: SteppedStream[Request, In, Out],
        error: Exception,
    ) -> None:
        if not isinstance(error, StageError):
            logger.error(
                "stage %s failed on %s", self._name, stream.ticket.request_id, exc_info=error
            )
            cause = f"{type(error).__name__}: {error}"
            error = stage_failed(self._name, self._failure_code, cause)
        self._leave(model, stream)
        stream.end(error)

    def _leave(
        self,
        model: SteppedModel[Request, In, Out],
        stream: SteppedStream[Request, In, Out],
    ) -> None:
        with self._changed:
            if stream not in self._streams:
                return  # it died without a slot, between two looks at the list
        if stream.slot is not None:
            try:
                model.close(stream.slot)
            except Exception:
                logger.exception("stage %s: closing slot %d", self._name, stream.slot)
        with self._changed:
            stream.is_reaped = True
            if stream.slot is not None:
                self._free.append(stream.slot)
            if stream in self._streams:
                self._streams.remove(stream)
                self.abort_latency.record(stream.ticket)

    def _on_abort(self, stream: SteppedStream[Request, In, Out]) -> None:
        with self._changed:
            if stream in self._streams and stream.slot is None:
                self._streams.remove(stream)
                self.abort_latency.record(stream.ticket)
            self._changed.notify()
        if self._cpu is not None:
            self._cpu.reconsider()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _until_due_s(self) -> float | None:
        """How long until a starved slot has work again by itself; None: for ever."""
        rushing = self._rushers()
        due = [
            stream.due_s
            for stream in self._streams
            # One whose reader has enough waits for the reader.
            if stream.due_s is not None and (stream.outlet.has_room or stream in rushing)
        ]
        return max(0.0, min(due) - self._clock_s()) if due else None

    def _dead(self) -> list[SteppedStream[Request, In, Out]]:
        return [stream for stream in self._streams if stream.ticket.aborted]

    def _rushers(self) -> list[SteppedStream[Request, In, Out]]:
        return [] if self._lead is None else rushers(self._streams, self._lead.dry_s)

    def _runnable(self) -> list[SteppedStream[Request, In, Out]]:
        """Who has something to do, and a reader or others that wait for it."""
        runnable = [stream for stream in self._streams if stream.runnable]
        return runnable + [stream for stream in self._rushers() if stream.has_work]

    def _batch(self) -> list[SteppedStream[Request, In, Out]]:
        runnable = self._runnable()
        standings = [stream.standing for stream in runnable]
        return [runnable[place] for place in choose(standings, self._dry_s, self._batch_limit)]
