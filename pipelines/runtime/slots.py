"""The contract of stepped models: many requests advance together, one step at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

Request = TypeVar("Request", contravariant=True)
In = TypeVar("In", contravariant=True)
Out = TypeVar("Out")


class SlotState(Enum):
    RUNNING = "running"  # the next step does more for this slot
    STARVED = "starved"  # nothing to do until more is fed
    ENDED = "ended"  # the request is complete


@dataclass(frozen=True, slots=True)
class SlotResult(Generic[Out]):
    """What one step made for one slot."""

    state: SlotState
    outputs: tuple[Out, ...] = ()


class SteppedModel(Protocol[Request, In, Out]):
    """A model with a fixed number of slots. Its methods run in one thread, never at once."""

    @property
    def slots(self) -> int: ...

    def open(self, slot: int, request: Request) -> None:
        """Begin a request in a free slot; nothing of the slot's last request is left."""
        ...

    def feed(self, slot: int, chunk: In | None) -> None:
        """More input; None: no more comes."""
        ...

    def step(self, active: Sequence[int]) -> Mapping[int, SlotResult[Out]]:
        """Advance these slots, the most urgent first, by one quantum; a result for each of them.

        After None was fed, a slot that is STARVED has ended.
        """
        ...

    def close(self, slot: int) -> None:
        """Free the slot, at its end or at an abort, whatever state it is in."""
        ...
