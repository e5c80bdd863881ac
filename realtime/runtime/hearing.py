"""What the user said: the ring of the last seconds, and the turns that are kept beside it.

Memory per session: the ring, 0.96 MB; the kept turns together at most `_KEPT_SAMPLES`, 9.6 MB.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pipelines.types import HEARING_RATE_HZ
from realtime.audio.quantise import FloatSamples, IntSamples, to_float32
from realtime.audio.ring import Ring

_RING_SAMPLES = 30 * HEARING_RATE_HZ  # a whole recogniser window can still be looked back at
# Push-to-talk knows no longest turn, and memory must have one: five minutes.
_KEPT_SAMPLES = 300 * HEARING_RATE_HZ


@dataclass(slots=True)
class _KeptTurn:
    """Audio from `start` on, in pieces; `start` moves when the oldest pieces must go."""

    start: int
    pieces: list[IntSamples] = field(default_factory=list[IntSamples])
    length: int = 0

    def add(self, piece: IntSamples) -> None:
        if len(piece):
            self.pieces.append(piece)
            self.length += len(piece)

    def drop_oldest(self) -> None:
        oldest = self.pieces.pop(0)
        self.start += len(oldest)
        self.length -= len(oldest)

    def cut(self, start: int, end: int) -> IntSamples:
        """[start, end), as far as it is held."""
        joined = np.concatenate(self.pieces) if self.pieces else np.zeros(0, dtype=np.int16)
        self.pieces = [joined] if len(joined) else []
        return joined[max(0, start - self.start) : max(0, end - self.start)]


class Hearing:
    """Positions are samples at 16 kHz since the session began; `position` is the present."""

    def __init__(self) -> None:
        self._ring = Ring(_RING_SAMPLES)
        self._turns: dict[int, _KeptTurn] = {}

    @property
    def position(self) -> int:
        return self._ring.position

    def write(self, samples: FloatSamples) -> None:
        """float32 [n] at 16 kHz, the next that was heard."""
        kept = self._ring.write(samples)
        for turn in self._turns.values():
            turn.add(kept)
        while sum(turn.length for turn in self._turns.values()) > _KEPT_SAMPLES:
            max(self._turns.values(), key=lambda turn: turn.length).drop_oldest()

    def keep(self, turn: int, start: int) -> None:
        """Hold on to everything from `start`, as far back as the ring goes."""
        start = min(max(start, self._ring.oldest), self._ring.position)
        kept = self._turns[turn] = _KeptTurn(start)
        kept.add(self._ring.read(start, self._ring.position))

    def drop(self, turn: int) -> None:
        self._turns.pop(turn, None)

    def take(self, turn: int, end: int) -> tuple[int, IntSamples]:
        """The start of a turn and its audio up to `end`, which is then no longer kept here."""
        kept = self._turns.pop(turn, None)
        if kept is None:
            return end, np.zeros(0, dtype=np.int16)
        return kept.start, kept.cut(kept.start, end)

    def read(self, turn: int, start: int, end: int) -> FloatSamples:
        """[start, end) of a kept turn, or of the ring if the turn is not kept; float32."""
        kept = self._turns.get(turn)
        audio = self._ring.read(start, end) if kept is None else kept.cut(start, end)
        return to_float32(audio)

    @property
    def kept_turns(self) -> int:
        return len(self._turns)

    def forget(self) -> None:
        """Free all audio: the session is over, though its objects may live until a collection."""
        self._turns.clear()
        self._ring.forget()
