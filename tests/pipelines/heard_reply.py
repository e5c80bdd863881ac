"""A reply of scripted stages, heard with the virtual time of each output."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pipelines import ports
from pipelines.courtesy import Courtesy
from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.virtual_time import run_virtual
from pipelines.fakes.writer import FakeWriter, Step
from pipelines.reply import ReplyTiming
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    ReplyOutput,
    ReplyRequest,
    SpeechDelta,
    StageError,
    TextDelta,
    Urgency,
)

FILLERS = ("One moment.", "Let me see.")
APOLOGY = "Sorry, I can't answer right now."
EMPTY = "I have no answer to that."
COURTESY = Courtesy(2000, FILLERS, APOLOGY, EMPTY)
WORD_SAMPLES = 7200  # of the scripted voice
BROKEN = StageError("llm_unreachable", "nobody is there")


def request(
    speak: bool = True, urgency: Urgency = Urgency.FIRST_AUDIO, turns: int = 1
) -> ReplyRequest:
    messages = tuple(Message("user", "hi") for _ in range(turns))
    return ReplyRequest("r", messages, urgency, speak, "tone")


class Heard:
    """A reply's outputs with the virtual time of each."""

    def __init__(self) -> None:
        self.outputs: list[tuple[float, ReplyOutput]] = []
        self.error: StageError | None = None

    async def listen(self, stream: ports.ReplyStream) -> Heard:
        try:
            async for output in stream:
                now_ms = asyncio.get_running_loop().time() * 1000
                self.outputs.append((now_ms, output))
        except StageError as error:
            self.error = error
        return self

    @property
    def text(self) -> str:
        return "".join(o.text for _, o in self.outputs if isinstance(o, TextDelta))

    @property
    def speech(self) -> list[tuple[float, int]]:
        """When each piece of sound came, and how much text it covered. Sound keeps its order."""
        return [
            (at_ms, o.text_end)
            for at_ms, o in self.outputs
            if isinstance(o, SpeechDelta) and len(o.samples)
        ]

    @property
    def last_text_end(self) -> int:
        return [o.text_end for _, o in self.outputs if isinstance(o, SpeechDelta)][-1]

    @property
    def reason(self) -> FinishReason | None:
        last = self.outputs[-1][1] if self.outputs else None
        return last.reason if isinstance(last, Finished) else None


def with_cascade(
    script: list[Step],
    body: Callable[[FakeCascade], Awaitable[None]],
    speaker: FakeSpeaker | None = None,
    courtesy: Courtesy = COURTESY,
) -> None:
    timing = ReplyTiming(courtesy=courtesy)

    async def main() -> None:
        cascade = FakeCascade(writer=FakeWriter([script]), speaker=speaker, timing=timing)
        await cascade.start(lambda line: None)
        try:
            await body(cascade)
            for _ in range(20):
                await asyncio.sleep(0)
            assert cascade.active == 0
        finally:
            await cascade.close()
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main())


def pushed(cascade: FakeCascade) -> list[str]:
    return [text.strip() for _, text in cascade.speaker.pushed]
