"""How far the making of sound may run ahead of its hearing, in seconds of audio.

Sound that nobody has heard is wasted when its listener interrupts, and the device that made it was
not there for somebody who waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pipelines.types import SpeechDelta

Out = TypeVar("Out", contravariant=True)

LIMIT_S = 1.0  # whoever reads keeps seconds more: this bridges the way there, and a late step
RESUME_S = 0.5  # far enough below the limit that a stream does not join and leave at every step
DRY_S = 0.25  # a few steps of any model here
MOST_S = 60.0  # a long answer: 6 MB of float32 at 24 kHz, the most that a stream holds unread


@dataclass(frozen=True, slots=True)
class Lead(Generic[Out]):
    """Bounds what was made of one request and not read yet.

    weigh: seconds of audio in an output; called in the stage's thread.
    limit_s: unread seconds at which the request is paused; what one step makes may exceed it.
    resume_s: unread seconds at or below which it goes on.
    dry_s: unread seconds below which it goes before others that have more.
    most_s: unread seconds at which it is paused even while others wait for its slot.
    """

    weigh: Callable[[Out], float]
    limit_s: float = LIMIT_S
    resume_s: float = RESUME_S
    dry_s: float = DRY_S
    most_s: float = MOST_S

    def __post_init__(self) -> None:
        if not 0 <= self.dry_s <= self.resume_s < self.limit_s <= self.most_s:
            raise ValueError(
                "a lead needs 0 <= dry_s <= resume_s < limit_s <= most_s, not "
                f"{self.dry_s:g}, {self.resume_s:g}, {self.limit_s:g} and {self.most_s:g}"
            )


class Cushion:
    """How long the sound still lasts for a listener who plays it as it is made.

    Where it ends, the listener waits, and plays what comes next from when it comes.
    """

    def __init__(self) -> None:
        self._until_s = -math.inf

    def add(self, seconds: float, now_s: float) -> None:
        self._until_s = max(self._until_s, now_s) + seconds

    def left_s(self, now_s: float) -> float:
        """Below 0: the listener hears nothing."""
        return self._until_s - now_s


def speech_seconds(delta: SpeechDelta) -> float:
    return len(delta.samples) / delta.rate_hz


SPEAKER_LEAD: Lead[SpeechDelta] = Lead(speech_seconds)
