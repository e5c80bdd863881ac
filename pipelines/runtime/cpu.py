"""One token of CPU, so that stages which share few cores run in order of urgency.

Without it a recogniser, a prefill, a decode and a voice each take all cores at once, and the one
that somebody waits for is as slow as the one that nobody needs yet.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from pipelines.runtime.ticket import Aborted, Ticket
from pipelines.types import Urgency


class Claimant(Protocol):
    """Somebody who waits for the token, perhaps for whichever request is then most urgent.

    Both methods are called under the token's lock: they must not block, nor call the token.
    """

    def urgency(self) -> Urgency | None:
        """How urgent the claim is now; None: it is void, and the waiting ends."""
        ...

    def take(self) -> Ticket | None:
        """The token is granted: whose ticket holds it? None: the claim is void after all."""
        ...


class CpuToken:
    """`slots` holders at a time; who is next is decided by urgency, then by arrival."""

    def __init__(self, slots: int = 1) -> None:
        if slots < 1:
            raise ValueError(f"a CPU token needs at least one slot, not {slots}")
        self._lock = threading.Lock()
        self._free = slots
        self._waiters: list[_Waiter] = []
        self._holders: set[Ticket] = set()
        self._arrivals = itertools.count()

    @property
    def waiting(self) -> int:
        with self._lock:
            return len(self._waiters)

    @contextmanager
    def hold(self, ticket: Ticket) -> Generator[None]:
        """Block until it is this ticket's turn. Raises Aborted. One hold per ticket at a time."""
        self._acquire(ticket)
        try:
            yield
        finally:
            self._release(ticket)

    @contextmanager
    def hold_for(self, claimant: Claimant) -> Generator[Ticket | None]:
        """Block until the claim is granted; yields who holds the token, or None if it was void."""
        ticket = self._wait(_Waiter(claimant, next(self._arrivals)))
        try:
            yield ticket
        finally:
            if ticket is not None:
                self._release(ticket)

    def give_way(self, ticket: Ticket) -> None:
        """Inside a hold: let the more urgent go first, and equals in turn. Raises Aborted.

        Call it between quanta of work, such as decoded tokens; without waiters it costs a lock.
        Equals take turns because the writer and the voice of one reply are equals: a writer that
        kept the token until its last word would starve the voice of its first.
        """
        ticket.check()
        with self._lock:
            if ticket not in self._holders:
                raise RuntimeError(f"request {ticket.request_id} gives way without the token")
            urgencies = [waiter.claimant.urgency() for waiter in self._waiters]
            if not any(urgency is not None and urgency <= ticket.urgency for urgency in urgencies):
                return
            self._drop(ticket)
        self._acquire(ticket)

    def outranked(self, ticket: Ticket) -> bool:
        """Whether somebody more urgent waits."""
        with self._lock:
            urgencies = [waiter.claimant.urgency() for waiter in self._waiters]
        return any(urgency is not None and urgency < ticket.urgency for urgency in urgencies)

    @contextmanager
    def lend(self, ticket: Ticket) -> Generator[None]:
        """Inside a hold: let anybody have the token during the block. Raises Aborted after it."""
        with self._lock:
            self._drop(ticket)
        yield
        self._acquire(ticket)

    def reconsider(self) -> None:
        """Wake the waiters whose claim has become void."""
        with self._lock:
            for waiter in [w for w in self._waiters if w.claimant.urgency() is None]:
                self._waiters.remove(waiter)
                waiter.granted.set()

    def _acquire(self, ticket: Ticket) -> None:
        forget = ticket.on_abort(self.reconsider)
        try:
            if self._wait(_Waiter(_One(ticket), next(self._arrivals))) is None:
                raise Aborted(ticket.request_id)
        finally:
            forget()

    def _wait(self, waiter: _Waiter) -> Ticket | None:
        with self._lock:
            self._waiters.append(waiter)
            self._grant()
            if waiter.claimant.urgency() is None and waiter in self._waiters:
                self._waiters.remove(waiter)
                return None
        waiter.granted.wait()
        return waiter.ticket

    def _release(self, ticket: Ticket) -> None:
        with self._lock:
            # A ticket that died while it gave way has nothing to release.
            if ticket in self._holders:
                self._drop(ticket)

    def _drop(self, ticket: Ticket) -> None:
        self._holders.remove(ticket)
        self._free += 1
        self._grant()

    def _grant(self) -> None:
        while self._free and self._waiters:
            ranked = [(w.claimant.urgency(), w.arrival, w) for w in self._waiters]
            void = [w for urgency, _, w in ranked if urgency is None]
            live = [(urgency, arrival, w) for urgency, arrival, w in ranked if urgency is not None]
            for waiter in void:
                self._waiters.remove(waiter)
                waiter.granted.set()
            if not live:
                return
            chosen = min(live, key=lambda entry: entry[:2])[2]
            self._waiters.remove(chosen)
            chosen.ticket = chosen.claimant.take()
            if chosen.ticket is not None:
                if chosen.ticket in self._holders:
                    raise RuntimeError(f"request {chosen.ticket.request_id} holds the token twice")
                self._holders.add(chosen.ticket)
                self._free -= 1
            chosen.granted.set()


class _Waiter:
    def __init__(self, claimant: Claimant, arrival: int) -> None:
        self.claimant = claimant
        self.arrival = arrival
        self.granted = threading.Event()
        self.ticket: Ticket | None = None


class _One:
    """The claim of a single ticket."""

    def __init__(self, ticket: Ticket) -> None:
        self._ticket = ticket

    def urgency(self) -> Urgency | None:
        return None if self._ticket.aborted else self._ticket.urgency

    def take(self) -> Ticket | None:
        return None if self._ticket.aborted else self._ticket
