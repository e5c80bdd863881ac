"""Calls in which something goes wrong: a whole session over scripted stages, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np

from pipelines.cascade import VoiceCascade
from pipelines.courtesy import Courtesy
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.virtual_time import run_virtual
from pipelines.reply import ReplyTiming
from pipelines.runtime.async_stage import AsyncDuplexStage
from pipelines.runtime.ticket import Ticket
from pipelines.types import Samples, SpeakRequest, SpeechDelta
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.session.settings import SessionSettings
from tests.realtime.runtime.stand_ins import PipeTransport, append, pcm, silence, tone

APOLOGY = "Sorry, I can't answer right now."
EMPTY = "I have no answer to that."
TIMING = ReplyTiming(courtesy=Courtesy(2000, ("One moment.",), APOLOGY, EMPTY))
WORD_SAMPLES = 7200  # of the scripted voice, at the wire's rate
SETUP = SessionSetup(SessionSettings(), seed=7, drafts=False)
CHUNK_MS = 20


class Caller:
    """The client's side of a call, in real time as the loop counts it."""

    def __init__(self, transport: PipeTransport) -> None:
        self.transport = transport

    async def talk(self, audio: Samples) -> None:
        step = 24 * CHUNK_MS
        for at in range(0, len(audio), step):
            self.transport.client_sends(append(pcm(audio[at : at + step])))
            await asyncio.sleep(CHUNK_MS / 1000)

    async def ask(self, number: int = 1) -> dict[str, Any]:
        """Hear what still plays, say something, wait for the `number`-th response of the call."""
        await self.talk(np.concatenate([silence(1500), tone(800), silence(700)]))
        done = await self.transport.until("response.done", number, timeout_s=120)
        return done["response"]

    @property
    def heard_samples(self) -> int:
        return len(self.transport.audio())

    @property
    def transcript(self) -> str:
        kind = "response.output_audio_transcript.delta"
        return "".join(event["delta"] for event in self.transport.of(kind))


def call(
    cascade: VoiceCascade,
    talk: Callable[[Caller], Awaitable[None]],
    setup: SessionSetup = SETUP,
) -> PipeTransport:
    """Run a call to the end of the caller's script; nothing of it is left then."""

    async def main() -> PipeTransport:
        await cascade.start(lambda line: None)
        before = asyncio.all_tasks()
        transport = PipeTransport()
        session = SessionRuntime(transport, cascade, setup)
        running = asyncio.create_task(session.run())
        await talk(Caller(transport))
        transport.client_leaves()
        await running
        assert session.open_requests == 0 and cascade.active == 0
        assert asyncio.all_tasks() == before
        await cascade.close()
        return transport

    return run_virtual(main(), limit_s=3600)


class VoiceThatFailsOnce(FakeSpeaker):
    """Its first request ends in the middle of the third word."""

    def _part_of_word(self, spoken_words: int) -> float:
        return 0.5 if len(self.requests) == 1 and spoken_words == 2 else 1.0


def silent_voice() -> AsyncDuplexStage[SpeakRequest, str, SpeechDelta]:
    """A voice that takes text and never answers."""

    async def hang(
        request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
    ) -> AsyncIterator[SpeechDelta]:
        await asyncio.Event().wait()
        yield SpeechDelta(np.zeros(1, np.float32), 24_000, 0)

    return AsyncDuplexStage("silent", hang)


def problem(response: dict[str, Any]) -> str:
    """The code of a failed response."""
    return response["status_details"]["error"]["code"]


def said(response: dict[str, Any]) -> list[str]:
    """The transcript of each message of a response."""
    return [
        part["transcript"]
        for item in response["output"]
        if item["type"] == "message"
        for part in item["content"]
    ]
