"""What the driver needs of a conversation, and what the others may know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from realtime.session.effects import Effect
from realtime.session.events import Event
from realtime.session.settings import AudioFormat
from realtime.session.states import Lifecycle


class Conversation(Protocol):
    """The sans-I/O machine, seen from its shell."""

    def step(self, event: Event, now_ms: float) -> list[Effect]: ...

    def next_deadline_ms(self) -> float | None:
        """When the machine wants a Tick; None: it waits for nothing."""
        ...

    @property
    def lifecycle(self) -> Lifecycle: ...


@dataclass(frozen=True, slots=True)
class SessionView:
    """The settings in effect, as the client was last told them."""

    input_format: AudioFormat = AudioFormat()
    output_format: AudioFormat = AudioFormat()
