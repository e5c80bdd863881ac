"""Clients that lose their sockets and come back, over sockets in memory."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np

from pipelines.fakes.virtual_time import run_virtual
from pipelines.types import (
    Finished,
    FinishReason,
    ReplyOutput,
    ReplyRequest,
    Samples,
    SpeechDelta,
    TextDelta,
    WordEnd,
)
from realtime.observe.metrics import Metrics
from realtime.runtime.registry import Registry
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.session.prompt import RECONNECTED
from realtime.session.settings import SessionSettings
from tests.realtime.runtime.stand_ins import (
    RATE_HZ,
    PipeTransport,
    ScriptedCascade,
    ScriptedStream,
    append,
    pcm,
    silence,
    tone,
)

RESUME_MS = 60_000
SETUP = SessionSetup(SessionSettings(), seed=11, drafts=False, resume_ms=RESUME_MS)
WORDS = tuple("one two three four five six seven eight nine ten".split())
WORD_MS = 300


def pitch_hz(word: str) -> float:
    """Each word has its own, so that ears can tell which ones they hear."""
    return 400.0 + 200.0 * WORDS.index(word)


def words_in(audio: Samples) -> list[str]:
    """The words that sound in float32 [n] at RATE_HZ, in order; neighbours of one word are one."""
    window = RATE_HZ * WORD_MS // 1000 // 6
    heard = list[str]()
    for at in range(0, len(audio) - window + 1, window):
        piece = audio[at : at + window]
        if np.sqrt(np.mean(piece**2)) < 0.01:
            continue
        spectrum = np.abs(np.fft.rfft(piece * np.hanning(window)))
        loudest_hz = np.argmax(spectrum) * RATE_HZ / window
        heard.append(min(WORDS, key=lambda word: abs(pitch_hz(word) - loudest_hz)))
    return [word for word, _ in itertools.groupby(heard)]


class Counting(ScriptedCascade):
    """Counts to ten; asked to go on, it does so behind the last number in the prompt."""

    def reply(self, request: ReplyRequest) -> ScriptedStream:
        self.calls["reply"] += 1
        self.requests.append(request)
        said = [message.text for message in request.messages if message.role == "assistant"]
        goes_on = request.messages[-1].text == RECONNECTED
        words = WORDS[len(" ".join(said).split()) if goes_on else 0 :]

        async def script() -> AsyncIterator[ReplyOutput]:
            if self.reply_gate is not None:
                await self.reply_gate.wait()
            text = ""
            for word in words:
                text += f" {word}" if text else word
                yield TextDelta(f" {word}" if text != word else word)
                sound = tone(WORD_MS, hz=pitch_hz(word))
                yield SpeechDelta(sound, RATE_HZ, len(text), (WordEnd(len(sound), len(text)),))
            yield Finished(FinishReason.STOP)

        stream = ScriptedStream(self, script)
        self.streams.append(stream)
        return stream


class House:
    """A registry, one cascade, and the clients at its door."""

    def __init__(
        self, cascade: ScriptedCascade, limit: int = 4, setup: SessionSetup = SETUP
    ) -> None:
        self.cascade = cascade
        self.setup = setup
        self.metrics = Metrics()
        self.registry = Registry(limit, self.metrics)
        self.tasks: list[asyncio.Task[None]] = []

    async def open(self) -> PipeTransport:
        """A client that wants to be resumable, and has been greeted."""
        transport = PipeTransport()
        session = SessionRuntime(
            transport,
            self.cascade,
            self.setup,
            metrics=self.metrics,
            parking=self.registry.parking,
        )
        self.tasks.append(asyncio.create_task(self.registry.host(session)))
        await transport.until("session.created")
        return transport

    async def resume(self, token: str) -> PipeTransport:
        """A client with a token. Raises SessionOver."""
        transport = PipeTransport()
        claim = self.registry.parking.claim(token)
        self.tasks.append(asyncio.create_task(claim.session.attach(transport)))
        await transport.until("session.created")
        return transport

    async def parked(self, count: int = 1) -> None:
        async with asyncio.timeout(5):
            while self.registry.parked != count or self.registry.open_requests:
                await asyncio.sleep(0)


def token_of(transport: PipeTransport) -> str:
    """Of the last greeting."""
    return transport.of("session.created")[-1]["parley"]["resume"]["token"]


def items_of(transport: PipeTransport) -> list[dict[str, Any]]:
    return [event["item"] for event in transport.of("conversation.item.added")]


def text_of(item: dict[str, Any]) -> str:
    return " ".join(part.get("transcript") or part.get("text") or "" for part in item["content"])


async def say(transport: PipeTransport, speech_ms: float = 800, after_ms: float = 900) -> None:
    """A microphone: real time, as the loop counts it."""
    audio = np.concatenate([silence(300), tone(speech_ms), silence(after_ms)])
    for at in range(0, len(audio), 480):
        transport.client_sends(append(pcm(audio[at : at + 480])))
        await asyncio.sleep(0.02)


def play(script: Callable[[House], Awaitable[None]], house: House) -> None:
    """Run a script in virtual time. At its end nothing is left, whatever it has left open."""

    async def main() -> None:
        before = asyncio.all_tasks()
        await script(house)
        await house.registry.drain(timeout_s=1)
        async with asyncio.timeout(20):
            await asyncio.gather(*house.tasks, return_exceptions=True)
        assert asyncio.all_tasks() == before
        assert house.cascade.active == house.registry.count == len(house.registry.parking) == 0
        assert all(detector.is_closed for detector in house.cascade.detectors)
        for task in house.tasks:
            task.result()

    run_virtual(main(), limit_s=10_000)
