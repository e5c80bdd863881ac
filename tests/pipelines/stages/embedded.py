"""How the tests of the embedded models run a stage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

import numpy as np
import soxr

from pipelines.ports import Progress, Stream
from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.types import HEARING_RATE_HZ, Drawing, Samples, SpeakRequest, SpeechDelta

In = TypeVar("In")
Out = TypeVar("Out")
# A busy machine is very slow; what is tested is that things end, not when.
FREED_S = 60.0
TEST_S = 300.0


def check(main: Callable[[], Awaitable[None]]) -> None:
    """Run an async test in real time, with a deadline."""

    async def bounded() -> None:
        async with asyncio.timeout(TEST_S):
            await main()

    asyncio.run(bounded())


class Active(Protocol):
    @property
    def active(self) -> int: ...


class Startable(Protocol):
    async def start(self, progress: Progress) -> None: ...

    async def close(self) -> None: ...


Started = TypeVar("Started", bound=Startable)


@asynccontextmanager
async def started(stage: Started) -> AsyncIterator[Started]:
    await stage.start(lambda line: None)
    try:
        yield stage
    finally:
        await stage.close()


async def outputs(stream: Stream[In, Out], inputs: Iterable[In] = ()) -> list[Out]:
    """Push everything, and read to the end."""
    for item in inputs:
        await stream.push(item)
    await stream.finish()
    return [output async for output in stream]


async def freed(stage: Active) -> None:
    """Wait until no request is open."""
    async with asyncio.timeout(FREED_S):
        while stage.active:  # threads end it, and tell nobody
            await asyncio.sleep(0.001)


async def say(speaker: PiperSpeaker, *chunks: str, speed: float = 1.0) -> list[SpeechDelta]:
    """The same sound each time: with a seed the voice speaks without chance."""
    request = SpeakRequest("say", "joe", speed=speed, drawing=Drawing(seed=1))
    return await outputs(speaker.open(request), chunks)


async def recording(speaker: PiperSpeaker, text: str, pause_s: float = 0.5) -> Samples:
    """The voice saying `text` at 16 kHz, over the noise of a quiet room, with silence around it."""
    deltas = await say(speaker, text)
    spoken = np.concatenate([delta.samples for delta in deltas])
    heard = soxr.resample(spoken, deltas[0].rate_hz, HEARING_RATE_HZ).astype(np.float32)
    pause = np.zeros(int(pause_s * HEARING_RATE_HZ), np.float32)
    return room(np.concatenate([pause, heard, pause]))


def room(audio: Samples, level: float = 0.001) -> Samples:
    noise = np.random.default_rng(7).standard_normal(len(audio))
    return (audio + level * noise).astype(np.float32)
