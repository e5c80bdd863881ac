"""Questions said aloud by the embedded voice, for tests of the embedded ears."""

from __future__ import annotations

import numpy as np
import soxr

from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.types import Drawing, SpeakRequest
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm


async def spoken(text: str) -> Pcm:
    """int16 [n] at WIRE_RATE_HZ, alike each time: with a seed the voice speaks without chance."""
    speaker = PiperSpeaker()
    await speaker.start(lambda _: None)
    stream = speaker.open(SpeakRequest("question", "joe", drawing=Drawing(seed=1)))
    await stream.push(text)
    await stream.finish()
    pieces = [(piece.samples, piece.rate_hz) async for piece in stream]
    await speaker.close()
    samples = soxr.resample(np.concatenate([p for p, _ in pieces]), pieces[0][1], WIRE_RATE_HZ)
    return (np.clip(samples, -1, 1) * 32_767).astype(np.int16)
