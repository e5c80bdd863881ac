"""How far the server is: what it loads, whether it serves, whether it stops."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    LOADING = "loading"
    READY = "ready"
    STOPPING = "stopping"
    FAILED = "failed"


@dataclass(slots=True)
class Readiness:
    """One per server; the wiring writes, every door reads. `detail` is for people."""

    phase: Phase = Phase.LOADING
    detail: str = "starting"

    @property
    def is_ready(self) -> bool:
        return self.phase is Phase.READY

    def move(self, phase: Phase, detail: str = "") -> None:
        self.phase, self.detail = phase, detail

    def refusal(self) -> str:
        """Why no conversation can begin now."""
        match self.phase:
            case Phase.LOADING:
                return f"The server is loading its models ({self.detail}). Try again in a moment."
            case Phase.STOPPING:
                return "The server is shutting down."
            case Phase.FAILED:
                return f"The server could not start: {self.detail}"
            case Phase.READY:
                return ""
