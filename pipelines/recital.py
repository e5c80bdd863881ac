"""A writer's stream of words that were written before."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pipelines.types import Finished, FinishReason, TextDelta, Urgency, WriteOutput


class Recital:
    """Implements `pipelines.ports.Stream` for a text that stands: there is nothing to compute."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def push(self, item: None) -> None:
        """A writer takes no input."""

    async def finish(self) -> None:
        """There is no input to end."""

    async def __aiter__(self) -> AsyncIterator[WriteOutput]:
        yield TextDelta(self._text)
        yield Finished(FinishReason.STOP)

    def abort(self) -> None:
        """Whoever reads stops reading."""

    def hurry(self, urgency: Urgency) -> None:
        """It takes no time."""
