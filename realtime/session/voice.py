"""From a detector's probabilities to a voice that goes up and down."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from realtime.session.policy import FRAME_SAMPLES, SAMPLES_PER_MS


class VoiceChange(Enum):
    UP = "up"
    DOWN = "down"


@dataclass(slots=True)
class Voice:
    """Hysteresis over frames. Positions are samples at 16 kHz."""

    is_up: bool = False
    since: int = 0  # where it went up
    voiced_samples: int = 0  # voiced frames since then
    quiet_since: int = 0  # where the last voiced frame ended

    def hear(
        self, position: int, speech: float, up: float, down: float, down_ms: int
    ) -> VoiceChange | None:
        """One frame that ends at `position`; `speech` is its probability."""
        if not self.is_up:
            if speech < up:
                return None
            self.is_up = True
            self.since = position - FRAME_SAMPLES
            self.voiced_samples = FRAME_SAMPLES
            self.quiet_since = position
            return VoiceChange.UP
        if speech >= down:
            self.voiced_samples += FRAME_SAMPLES
            self.quiet_since = position
        elif position - self.quiet_since >= down_ms * SAMPLES_PER_MS:
            self.is_up = False
            return VoiceChange.DOWN
        return None

    @property
    def voiced_ms(self) -> int:
        return self.voiced_samples // SAMPLES_PER_MS

    def reset(self) -> None:
        self.is_up = False
        self.voiced_samples = 0
