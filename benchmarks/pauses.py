"""The pauses of a recording, and which of them an agent took for the end.

Pauses that were put into a recording have a known length; the speaker's own are measured in the
sound. A cut-in is an agent that can be heard while the speaker has more to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.listening import Span, is_take_over
from benchmarks.recordings import Recording, voiced_spans
from realtime.commands.wire_client import WIRE_RATE_HZ

SHORTEST_MS = 250  # of the speaker's own: between syllables no agent answers
LENGTHS_MS: tuple[tuple[float, str], ...] = (  # classes of natural pauses: (shorter than, label)
    (SHORTEST_MS, "-250"),
    (450, "250-450"),
    (800, "450-800"),
    (1250, "800-1250"),
    (float("inf"), "1250-"),
)


class Kind(StrEnum):
    """What sort of silence it is."""

    MID_PAUSE = "mid-pause"  # put into the middle of a sentence, of a known length
    TWO_UTTERANCES = "two-utterances"  # put between two whole utterances, of a known length
    NATURAL = "natural"  # the speaker's own
    END = "end"


@dataclass(frozen=True, slots=True)
class Pause:
    """[start_ms, end_ms) of the recording."""

    kind: Kind
    start_ms: float
    end_ms: float

    @property
    def length_ms(self) -> float:
        return self.end_ms - self.start_ms

    @property
    def label(self) -> str:
        """The exact length of a pause that was put in, the class of a natural one."""
        if self.kind is not Kind.NATURAL:
            return f"{self.length_ms:.0f}"
        return length_class(self.length_ms)


def length_class(length_ms: float) -> str:
    return next(label for limit, label in LENGTHS_MS if length_ms < limit)


def pauses_of(recording: Recording) -> list[Pause]:
    """In order. A natural pause that mostly is the one that was put in is that one."""
    per_ms = WIRE_RATE_HZ // 1000
    sound = [(start / per_ms, end / per_ms) for start, end in voiced_spans(recording.pcm)]
    found = [
        Pause(Kind.NATURAL, one[1], other[0])
        for one, other in zip(sound, sound[1:], strict=False)
        if other[0] - one[1] >= SHORTEST_MS
    ]
    if recording.put_pause_ms is not None:
        start_ms, end_ms = recording.put_pause_ms
        found = [p for p in found if not overlaps((p.start_ms, p.end_ms), start_ms, end_ms)]
        is_whole = "two-utterances" in recording.tags
        kind = Kind.TWO_UTTERANCES if is_whole else Kind.MID_PAUSE
        found.append(Pause(kind, start_ms, end_ms))
    return sorted(found, key=lambda pause: pause.start_ms)


def overlaps(gap: tuple[float, float], start_ms: float, end_ms: float) -> bool:
    """Whether the gap and [start, end) share at least half of the shorter one."""
    shorter = min(gap[1] - gap[0], end_ms - start_ms)
    return 2 * (min(gap[1], end_ms) - max(gap[0], start_ms)) >= shorter


@dataclass(frozen=True, slots=True)
class Taken:
    """What an agent did in one pause.

    is_cut_in: a sound of it began here, or while the speaker went on. is_take_over: and lasted.
    is_early: the turn was committed here.
    """

    pause: Pause
    is_cut_in: bool
    is_take_over: bool
    is_early: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """One response: its sound on the recording's clock, and its words if it was heard out."""

    sound: tuple[Span, ...]
    words: int | None


def attribute(
    pauses: Sequence[Pause],
    last_voiced_ms: float,
    replies: Sequence[Reply],
    commits_ms: Sequence[float],
) -> list[Taken]:
    """Give each pause what the agent did from its start to the start of the next one.

    Times are on the recording's clock; what comes after its last voiced sample is no cut-in.
    """
    taken: list[Taken] = []
    for place, pause in enumerate(pauses):
        is_last = place + 1 == len(pauses)
        until_ms = last_voiced_ms if is_last else pauses[place + 1].start_ms
        begun = [
            reply
            for reply in replies
            if reply.sound and pause.start_ms <= reply.sound[0].start_ms < until_ms
        ]
        taken.append(
            Taken(
                pause,
                bool(begun),
                any(is_take_over(reply.sound, reply.words) for reply in begun),
                any(pause.start_ms <= at_ms < until_ms for at_ms in commits_ms),
            )
        )
    return taken
