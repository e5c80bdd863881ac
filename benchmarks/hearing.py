"""The embedded recogniser as a judge of speech: what does it hear in this audio?"""

from __future__ import annotations

import asyncio
import sys

import numpy as np
import soxr

from pipelines.stages.asr_whisper import WhisperRecogniser
from pipelines.types import HEARING_RATE_HZ, RecogniseRequest
from pipelines.weights import WeightsError
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm


def hear_all(clips: list[Pcm]) -> list[str]:
    """Transcripts of int16 [n] clips at WIRE_RATE_HZ, one after another."""
    try:
        return asyncio.run(_hear_all(clips))
    except WeightsError as error:
        sys.exit(str(error))


async def _hear_all(clips: list[Pcm]) -> list[str]:
    recogniser = WhisperRecogniser()
    await recogniser.start(lambda _: None)
    try:
        return [await _hear(recogniser, clip, f"clip-{i}") for i, clip in enumerate(clips)]
    finally:
        await recogniser.close()


async def _hear(recogniser: WhisperRecogniser, clip: Pcm, request_id: str) -> str:
    samples = soxr.resample(clip.astype(np.float32) / 32_768, WIRE_RATE_HZ, HEARING_RATE_HZ)
    stream = recogniser.open(RecogniseRequest(request_id))
    await stream.push(samples.astype(np.float32))
    await stream.finish()
    text = ""
    async for transcript in stream:
        text = transcript.text
    return text
