"""A scripted writer: each reply is a list of steps with exact times."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pipelines.fakes.clock import Clock, LoopClock, sleep_after
from pipelines.fakes.hearing import REMEMBERED_REQUESTS
from pipelines.runtime.async_stage import AsyncStage
from pipelines.runtime.ticket import Ticket
from pipelines.types import (
    Finished,
    FinishReason,
    StageError,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageSoFar,
    WriteOutput,
    WriteRequest,
)


@dataclass(frozen=True, slots=True)
class Say:
    text: str
    after_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Call:
    """A whole tool call, or, with the same index again, more of its arguments."""

    name: str
    arguments: str
    call_id: str = "call_1"
    index: int = 0
    after_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Use:
    """Tells what has been read and written so far."""

    usage: Usage
    after_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Fail:
    error: StageError
    after_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing comes any more; only an abort ends it."""


@dataclass(frozen=True, slots=True)
class End:
    """The script's end; without one it ends with `stop`, or `tool_calls` after a call."""

    reason: FinishReason
    usage: Usage = field(default_factory=Usage)


Step: TypeAlias = Say | Call | Use | Fail | Stall | End
Script: TypeAlias = Sequence[Step]


def words(text: str, first_ms: float = 0.0, per_word_ms: float = 0.0) -> list[Step]:
    """A text word by word, each with the space before it, as language models write."""
    pieces = re.findall(r"\s*\S+|\s+$", text)
    return [Say(piece, per_word_ms if number else first_ms) for number, piece in enumerate(pieces)]


def echo(request: WriteRequest) -> list[Step]:
    """Repeat the last thing that the user said."""
    heard = [message.text for message in request.messages if message.role == "user"]
    return words(f"You said: {heard[-1]}" if heard else "I am listening.")


class FakeWriter(AsyncStage[WriteRequest, WriteOutput]):
    """Plays one script per request, in order, the last one for ever; or a function's script."""

    def __init__(
        self,
        scripts: Sequence[Script] | Callable[[WriteRequest], Script] = echo,
        clock: Clock | None = None,
    ) -> None:
        self._scripts = scripts
        self._clock = clock or LoopClock()
        self._opened = 0
        self.requests: deque[WriteRequest] = deque(maxlen=REMEMBERED_REQUESTS)
        self.prepared: deque[WriteRequest] = deque(maxlen=REMEMBERED_REQUESTS)
        super().__init__("fake-writer", self._write)

    def _script(self, request: WriteRequest) -> Script:
        number = self._opened
        self._opened += 1
        if callable(self._scripts):
            return self._scripts(request)
        return self._scripts[min(number, len(self._scripts) - 1)]

    async def _write(self, request: WriteRequest, ticket: Ticket) -> AsyncIterator[WriteOutput]:
        if request.max_output_tokens == 0:
            self.prepared.append(request)
            yield Finished(FinishReason.LENGTH)
            return
        self.requests.append(request)
        tokens = 0
        called: set[int] = set()
        for step in self._script(request):
            match step:
                case Say(text, after_ms):
                    await sleep_after(self._clock, after_ms)
                    tokens += 1
                    yield TextDelta(text)
                case Call(name, arguments, call_id, index, after_ms):
                    await sleep_after(self._clock, after_ms)
                    tokens += 1
                    is_first = index not in called
                    called.add(index)
                    yield ToolCallDelta(
                        index, call_id if is_first else "", name if is_first else "", arguments
                    )
                case Use(usage, after_ms):
                    await sleep_after(self._clock, after_ms)
                    yield UsageSoFar(usage)
                case Fail(error, after_ms):
                    await sleep_after(self._clock, after_ms)
                    raise error
                case Stall():
                    await asyncio.Event().wait()
                case End(reason, usage):
                    yield Finished(reason, usage)
                    return
        reason = FinishReason.TOOL_CALLS if called else FinishReason.STOP
        yield Finished(reason, Usage(output_tokens=tokens))
