"""The contract of stepped models: many requests advance together, one step at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

from pipelines.types import StageError

Request = TypeVar("Request", contravariant=True)
In = TypeVar("In", contravariant=True)
Out = TypeVar("Out")


class SlotState(Enum):
    RUNNING = "running"  # the next step does more for this slot
    STARVED = "starved"  # nothing to do until more is fed
    ENDED = "ended"  # the request is complete


@dataclass(frozen=True, slots=True)
class SlotResult(Generic[Out]):
    """What one step made for one slot.

    again_s: a STARVED slot has something to do after so many seconds, also if nothing is fed.
    error: the request failed, and it alone; what else the step made for it is still delivered.
    """

    state: SlotState
    outputs: tuple[Out, ...] = ()
    again_s: float | None = None
    error: StageError | None = None


class SteppedModel(Protocol[Request, In, Out]):
    """A model with a fixed number of slots. Its methods run in one thread, never at once."""

    @property
    def slots(self) -> int: ...

    def open(self, slot: int, request: Request) -> None:
        """Begin a request in a free slot; nothing of the slot's last request is left.

        A StageError, here or from `feed`, refuses the request with its own code and message.
        """
        ...

    def feed(self, slot: int, chunk: In | None) -> None:
        """More input; None: no more comes."""
        ...

    def step(self, active: Sequence[int]) -> Mapping[int, SlotResult[Out]]:
        """Advance these slots, the most urgent first, by one quantum; a result for each of them.

        Any other open slot may have a result too, of work that an earlier step began on a device.
        An open slot gets a first step whether or not anything was fed, so that what stands before
        the input is done while it is awaited.
        A slot with such work under way is RUNNING, even if this step did nothing for it: one that
        is STARVED gets no step before it is fed, or before `again_s` has passed. After None was
        fed, STARVED without `again_s` means ENDED.
        """
        ...

    def close(self, slot: int) -> None:
        """Free the slot, at its end or at an abort, whatever state it is in.

        Nothing of it comes later: what a device still makes for it is dropped.
        """
        ...
