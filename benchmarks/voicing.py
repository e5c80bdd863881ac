"""The embedded voice as a speaker of test sentences."""

from __future__ import annotations

import asyncio
import sys

import numpy as np
import soxr

from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.types import SpeakRequest
from pipelines.weights import WeightsError
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm


def speak_all(texts: list[str], speed: float = 1.0) -> list[Pcm]:
    """The texts as int16 [n] clips at WIRE_RATE_HZ."""
    try:
        return asyncio.run(_speak_all(texts, speed))
    except WeightsError as error:
        sys.exit(str(error))


async def _speak_all(texts: list[str], speed: float) -> list[Pcm]:
    speaker = PiperSpeaker()
    await speaker.start(lambda _: None)
    clips: list[Pcm] = []
    try:
        for place, text in enumerate(texts):
            stream = speaker.open(SpeakRequest(f"text-{place}", "joe", speed=speed))
            await stream.push(text)
            await stream.finish()
            pieces = [(piece.samples, piece.rate_hz) async for piece in stream]
            samples = np.concatenate([piece for piece, _ in pieces])
            mono = soxr.resample(samples, pieces[0][1], WIRE_RATE_HZ)
            clips.append((np.clip(mono, -1, 1) * 32_767).astype(np.int16))
    finally:
        await speaker.close()
    return clips
