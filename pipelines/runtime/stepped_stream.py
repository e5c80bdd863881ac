"""One request of a stepped stage: its inputs, its slot, its outputs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from pipelines.runtime.batch import Standing
from pipelines.runtime.capacity import Listening
from pipelines.runtime.failures import no_free_slot
from pipelines.runtime.inbox import Inbox
from pipelines.runtime.outlet import Outlet
from pipelines.runtime.slots import SlotResult, SlotState
from pipelines.runtime.ticket import StageRequest, Ticket
from pipelines.types import StageError, Urgency

Request = TypeVar("Request", bound=StageRequest)
In = TypeVar("In")
Out = TypeVar("Out")


class SteppedStream(Generic[Request, In, Out]):
    """Implements `pipelines.ports.Stream` for its owner; the rest is for the stage's thread."""

    def __init__(
        self,
        request: Request,
        inbox: Inbox[In],
        outlet: Outlet[Out],
        wake: Callable[[], None],
        clock_s: Callable[[], float],
    ) -> None:
        self.request = request
        self.inbox = inbox
        self.outlet = outlet
        self.slot: int | None = None
        self.starved = True  # it joins the batch once it has a slot
        self.fed_end = False
        self.has_sounded = False
        self.last_step = 0
        self.is_reaped = False  # nothing of it is left in the stage
        self.listening = Listening()
        self._wake = wake
        self._clock_s = clock_s
        self._again_at_s: float | None = None  # when a starved slot has work again by itself
        outlet.ticket.on_abort(inbox.shut)

    @property
    def ticket(self) -> Ticket:
        return self.outlet.ticket

    @property
    def hungry(self) -> bool:
        """In a slot, with something to be fed."""
        if self.slot is None or self.ticket.aborted:
            return False
        return len(self.inbox) > 0 or (self.inbox.finished and not self.fed_end)

    @property
    def runnable(self) -> bool:
        return self.has_work and self.outlet.has_room

    @property
    def paused(self) -> bool:
        """Its reader has enough: it keeps its slot and is left out of the steps."""
        return self.has_work and not self.outlet.has_room

    @property
    def could_rush(self) -> bool:
        """Its text is whole, so it could run to its end though its reader has enough."""
        if self.slot is None or self.ticket.aborted or not self.fed_end:
            return False
        return not self.outlet.has_room and self.outlet.may_rush

    @property
    def due_s(self) -> float | None:
        """When there will be work, on the stage's clock, even if nothing is fed; None: never."""
        return self._again_at_s if self.starved and self.slot is not None else None

    @property
    def has_work(self) -> bool:
        if self.slot is None or self.ticket.aborted:
            return False
        if not self.starved:
            return True
        return self._again_at_s is not None and self._again_at_s <= self._clock_s()

    @property
    def standing(self) -> Standing:
        return Standing(self.ticket.urgency, self.has_sounded, self.outlet.unread_s, self.last_step)

    def is_over(self, result: SlotResult[Out]) -> bool:
        """Whether nothing comes after this step of its slot."""
        if result.state is SlotState.STARVED:
            return self.fed_end and result.again_s is None
        return result.state is SlotState.ENDED

    async def push(self, item: In) -> None:
        if await self.inbox.put(item):
            self._owe()
            self._wake()

    async def finish(self) -> None:
        if self.inbox.accepts:
            self.inbox.finish()
            self._owe()
            self._wake()

    def __aiter__(self) -> AsyncIterator[Out]:
        return self

    async def __anext__(self) -> Out:
        return await self.outlet.next()

    def abort(self) -> None:
        self.ticket.abort()

    def hurry(self, urgency: Urgency) -> None:
        self.ticket.hurry(urgency)

    def settle(self, slot: int) -> None:
        """It has a slot now: what it waits for from here on is the model."""
        self.slot = slot
        self.outlet.owe(False)

    def starve(self, again_s: float | None) -> None:
        """Nothing to do until something is fed, or until `again_s` has passed."""
        self.starved = True
        self._again_at_s = None if again_s is None else self._clock_s() + again_s
        self.outlet.owe(False)
        if self.hungry:  # also what came since the line above
            self.outlet.owe(True)

    def go_on(self) -> None:
        """There is something to do."""
        if self.starved:
            self.starved = False
            self.outlet.owe(True)

    def _owe(self) -> None:
        if self.slot is None:
            self.outlet.owe(True, no_free_slot)
        else:
            self.outlet.owe(True)

    def end(self, error: StageError | None = None) -> None:
        self.inbox.shut()
        self.outlet.end(error)
