"""Where each millisecond of a turn went. Stamps are monotone by construction."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class Stamp(IntEnum):
    """The stations of a turn, in the order in which they are printed."""

    SPEECH_END = 0  # the last voiced sample, on the shell's clock
    TRANSCRIPT = 1
    TURN_END = 2  # the end of the turn was decided
    COMMITTED = 3
    CREATED = 4
    FIRST_TEXT = 5
    VOICED = 6  # the voice was given the first words
    FIRST_AUDIO = 7  # the voice's first samples reached the egress
    FIRST_SENT = 8
    FIRST_PLAYED = 9  # by the paced clock
    DONE = 10


@dataclass(frozen=True, slots=True)
class TurnTimeline:
    """stamps_ms: (stamp, ms on the shell's clock), sorted by time. `status` is the response's."""

    turn: int | None
    response_id: str
    status: str
    drafted: bool
    stamps_ms: tuple[tuple[Stamp, float], ...]


@dataclass(slots=True)
class Ledger:
    """Collects one response's stamps; the first of each kind counts."""

    turn: int | None = None
    drafted: bool = False
    stamps_ms: dict[Stamp, float] = field(default_factory=dict[Stamp, float])

    def stamp(self, stamp: Stamp, at_ms: float | None) -> None:
        """None: that station was not passed."""
        if at_ms is not None:
            self.stamps_ms.setdefault(stamp, at_ms)

    @property
    def ordered_ms(self) -> tuple[tuple[Stamp, float], ...]:
        return tuple(sorted(self.stamps_ms.items(), key=lambda pair: (pair[1], pair[0])))

    @property
    def since_speech_ms(self) -> tuple[tuple[Stamp, int], ...]:
        """Whole milliseconds since the user's last sound, ascending; since the creation of a
        response that answers no speech."""
        ordered = self.ordered_ms
        zero_ms = self.stamps_ms.get(Stamp.SPEECH_END, self.stamps_ms.get(Stamp.CREATED))
        if zero_ms is None:
            return ()
        return tuple((stamp, round(at_ms - zero_ms)) for stamp, at_ms in ordered)

    def close(self, response_id: str, status: str) -> TurnTimeline:
        return TurnTimeline(self.turn, response_id, status, self.drafted, self.ordered_ms)
