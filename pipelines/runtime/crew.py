"""The threads of a stage: they pick the most urgent request that can run, and work one quantum."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Protocol

from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.failures import stage_failed
from pipelines.runtime.latency import AbortLatency
from pipelines.runtime.threads import join, load_in_thread
from pipelines.runtime.ticket import Aborted, Ticket
from pipelines.types import StageError, Urgency

logger = logging.getLogger(__name__)


class Job(Protocol):
    """One request as its threads see it. The first two are called under the crew's lock."""

    @property
    def ticket(self) -> Ticket: ...

    @property
    def ready(self) -> bool:
        """Whether `work` has something to do now."""
        ...

    @property
    def holds_work(self) -> bool:
        """Whether `dispose` must run, in a thread of the crew, before the request is reaped."""
        ...

    @property
    def runs_dry(self) -> bool:
        """Whether its listener is about to hear a gap: it goes before others of its class."""
        ...

    def work(self) -> bool:
        """Do one quantum, holding the token. True: the request has ended."""
        ...

    def dispose(self) -> None:
        """Free what the request holds between quanta. Called once, never during `work`."""
        ...

    def end(self, error: StageError | None) -> None:
        """Tell the owner that nothing more comes; by then the crew has forgotten the request."""
        ...


class Crew:
    """`threads` daemon threads around one model, and the requests that they serve.

    The most urgent goes first; in one class, who runs dry; and equals take turns, quantum by
    quantum, so that nobody's thousand sentences keep another from the first.

    The wait for the CPU token is a claim of the whole crew: when it is granted, the request that
    is the most urgent *then* runs, so a live reply never waits behind a draft's place in the queue.
    """

    def __init__(self, name: str, cpu: CpuToken | None, threads: int, failure_code: str) -> None:
        self.name = name
        self.cpu = cpu
        self.abort_latency = AbortLatency()
        self._failure_code = failure_code
        self._changed = threading.Condition()
        self._jobs: list[Job] = []  # whose turn is longest ago first; who comes is the last
        self._busy: set[Job] = set()
        self._closing = False
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]

    @property
    def active(self) -> int:
        with self._changed:
            return len(self._jobs)

    async def start(self, prepare: Callable[[], None]) -> None:
        """Run `prepare`, which loads the model, in a thread; then start to serve."""
        await load_in_thread(self.name, prepare)
        for thread in self._threads:
            thread.start()

    async def close(self) -> None:
        """Abort every request, let the steps that run end, and join the threads."""
        with self._changed:
            self._closing = True
            tickets = [job.ticket for job in self._jobs]
            self._changed.notify_all()
        for ticket in tickets:
            ticket.abort()
        if self.cpu is not None:
            self.cpu.reconsider()
        await asyncio.to_thread(join, self._threads)

    def add(self, job: Job) -> None:
        with self._changed:
            self._jobs.append(job)
        job.ticket.on_abort(lambda: self._on_abort(job))

    def discard(self, job: Job) -> bool:
        """Forget a request that needs no work to end; False while a thread has it."""
        with self._changed:
            if job not in self._jobs or job in self._busy:
                return False
            self._jobs.remove(job)
            self._changed.notify_all()
            return True

    def has(self, job: Job) -> bool:
        """Whether anything of this request is left here."""
        with self._changed:
            return job in self._jobs

    def wake(self) -> None:
        """Something became ready."""
        with self._changed:
            self._changed.notify()

    def is_turn_over(self, job: Job) -> bool:
        """After a quantum of its work: whether an equal waits here, or anybody more urgent."""
        with self._changed:
            if any(_rank(other) <= _rank(job) for other in self._ready()):
                return True
        return self.cpu is not None and self.cpu.outranked(job.ticket)

    # ---- the claim on the token (pipelines.runtime.cpu.Claimant) -----------------------------

    def urgency(self) -> Urgency | None:
        with self._changed:
            return None if self._closing or self._dead() else self._best_urgency()

    def take(self) -> Ticket | None:
        with self._changed:
            if self._closing or self._dead() or not (ready := self._ready()):
                return None
            job = min(ready, key=_rank)
            self._busy.add(job)
            self._jobs.remove(job)
            self._jobs.append(job)  # the next turn is for whoever waits longer
            return job.ticket

    # ---- threads -----------------------------------------------------------------------------

    def _run(self) -> None:
        while self._wait_for_work():
            self._reap_dead()
            if self.cpu is None:
                self._step(self.take())
            else:
                with self.cpu.hold_for(self) as ticket:
                    self._step(ticket)

    def _wait_for_work(self) -> bool:
        with self._changed:
            while True:
                if self._dead() or (not self._closing and self._ready()):
                    return True
                # What holds work is disposed of here, once `close` has aborted it.
                if self._closing and not self._jobs:
                    return False
                self._changed.wait()

    def _step(self, ticket: Ticket | None) -> None:
        if ticket is None:
            return
        with self._changed:
            job = next(job for job in self._busy if job.ticket is ticket)
        ended, error = self._guard(job)
        if ended or ticket.aborted:
            self._dispose(job)
        with self._changed:
            self._busy.discard(job)
            if ended or ticket.aborted:
                self._bury(job)
            else:
                # Another thread may have slept because this job was busy.
                self._changed.notify()
        if ended:
            job.end(error)

    def _guard(self, job: Job) -> tuple[bool, StageError | None]:
        """One quantum: whether the request has ended, and by which error."""
        try:
            job.ticket.check()
            return job.work(), None
        except Aborted:
            cause = "the model gave up the request without being asked to"
        except StageError as error:
            return True, error
        except Exception as error:
            logger.exception("stage %s failed on request %s", self.name, job.ticket.request_id)
            cause = f"{type(error).__name__}: {error}"
        return True, stage_failed(self.name, self._failure_code, cause)

    def _dispose(self, job: Job) -> None:
        try:
            job.dispose()
        except Exception:
            logger.exception("stage %s: ending request %s", self.name, job.ticket.request_id)

    def _reap_dead(self) -> None:
        while True:
            with self._changed:
                dead = self._dead()
                if not dead:
                    return
                job = dead[0]
                self._busy.add(job)
            self._dispose(job)
            with self._changed:
                self._busy.discard(job)
                self._bury(job)

    def _bury(self, job: Job) -> None:
        # An abort that comes between the last quantum and here finds the job already gone.
        if job in self._jobs:
            self._jobs.remove(job)
            self.abort_latency.record(job.ticket)
            self._changed.notify_all()  # threads end when the last one has gone

    def _on_abort(self, job: Job) -> None:
        with self._changed:
            if job in self._jobs and job not in self._busy and not job.holds_work:
                self._bury(job)
            self._changed.notify_all()
        if self.cpu is not None:
            self.cpu.reconsider()

    def _dead(self) -> list[Job]:
        return [job for job in self._jobs if job.ticket.aborted and job not in self._busy]

    def _ready(self) -> list[Job]:
        return [
            job
            for job in self._jobs
            if job not in self._busy and not job.ticket.aborted and job.ready
        ]

    def _best_urgency(self) -> Urgency | None:
        return min((job.ticket.urgency for job in self._ready()), default=None)


def _rank(job: Job) -> tuple[Urgency, bool]:
    return job.ticket.urgency, not job.runs_dry
