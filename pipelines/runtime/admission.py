"""Who gets a slot of a stepped stage next, and who makes room for it: pure choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from pipelines.runtime.batch import Standing, urgency_of
from pipelines.runtime.ticket import Ticket
from pipelines.types import Urgency


class Candidate(Protocol):
    """What is asked of a stream; `pipelines.runtime.stepped_stream` tells what each means."""

    slot: int | None
    has_sounded: bool

    @property
    def ticket(self) -> Ticket: ...

    @property
    def standing(self) -> Standing: ...

    @property
    def runnable(self) -> bool: ...

    @property
    def could_rush(self) -> bool: ...


Stream = TypeVar("Stream", bound=Candidate)


def first_waiting(streams: Sequence[Stream]) -> Stream | None:
    """The most urgent of those without a slot; among equals who came first."""
    waiting = [stream for stream in streams if _waits(stream)]
    return min(waiting, key=lambda stream: stream.ticket.urgency, default=None)


def evicted(streams: Sequence[Stream], waiting: Candidate) -> Stream | None:
    """The draft whose slot goes to `waiting`; None if there is none, or it is a draft itself.

    The latest that has not sounded has least to lose: it is begun anew if it is wanted.
    """
    if waiting.ticket.urgency is Urgency.DRAFT:
        return None
    drafts = [
        stream
        for stream in streams
        if stream.slot is not None and stream.ticket.urgency is Urgency.DRAFT
    ]
    silent = [stream for stream in drafts if not stream.has_sounded]
    return next(reversed(silent or drafts), None)


def rushers(streams: Sequence[Stream], dry_s: float) -> list[Stream]:
    """Who may run on though its reader has enough: as many as wait for a slot, the first to come.

    Nobody while a listener is about to hear a gap: a larger batch takes longer.
    """
    waiting = sum(_waits(stream) for stream in streams)
    if not waiting:
        return []
    running = (stream.standing for stream in streams if stream.runnable)
    if any(urgency_of(standing, dry_s) is Urgency.RUNNING_DRY for standing in running):
        return []
    return [stream for stream in streams if stream.could_rush][:waiting]


def _waits(stream: Candidate) -> bool:
    return stream.slot is None and not stream.ticket.aborted
