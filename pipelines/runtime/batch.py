"""Who is in the next step of a stepped stage: a pure choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.types import Urgency


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of one stream that could be in the next step.

    asked: the class that its owner has given it. has_sounded: whether it has delivered anything.
    unread_s: seconds of audio that wait for its reader. last_step: the step that it was in last.
    """

    asked: Urgency
    has_sounded: bool = False
    unread_s: float = 0.0
    last_step: int = 0


def urgency_of(standing: Standing, dry_s: float | None) -> Urgency:
    """The class that counts now. dry_s: None where outputs have no length.

    An owner who says RUNNING_DRY or STEADY of a stream that sounds knows what its listener has,
    which is more than what waits here. Of one who still says FIRST_AUDIO, what waits here tells.
    """
    if dry_s is None or standing.asked is Urgency.DRAFT:
        return standing.asked
    if not standing.has_sounded:
        return Urgency.FIRST_AUDIO
    if standing.asked is not Urgency.FIRST_AUDIO:
        return standing.asked
    return Urgency.RUNNING_DRY if standing.unread_s < dry_s else Urgency.STEADY


def choose(standings: Sequence[Standing], dry_s: float | None, limit: int | None) -> list[int]:
    """Places of the streams in the next step, the most urgent first, at most `limit` of them.

    Among equals who has least ahead goes first, then who was left out longest, so that they take
    turns under a limit, then who came first.
    """

    def rank(place: int) -> tuple[Urgency, float, int, int]:
        standing = standings[place]
        return urgency_of(standing, dry_s), standing.unread_s, standing.last_step, place

    return sorted(range(len(standings)), key=rank)[:limit]
