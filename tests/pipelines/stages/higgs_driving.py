"""A Higgs voice of a few kilobytes as a stage, driven by several tests on one loop."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.types import Samples, SpeakRequest, SpeechDelta, StageError, VoiceSample

TEXTS = ("Good morning to you. ", "How are you?")
PATIENCE_S = 120.0
FRAME_SAMPLES = 960
POSITIONS = 600


def write_voice(folder: Path) -> Path:
    """A checkpoint of v3."""
    from pipelines.higgs.codec.config import tiny_codec_config
    from pipelines.higgs.codec.weights import random_codec
    from pipelines.higgs.synthetic.models import tiny_config, write_checkpoint

    codec = random_codec(tiny_codec_config()).state_dict()
    content = tiny_config() | tiny_codec_config().section()
    write_checkpoint(folder, content, seed=3, typical_rows=25, codec=codec)
    return folder


def arguments(folder: Path, **options: Any) -> dict[str, Any]:
    """Of `factories.create_higgs`."""
    return {
        "model": str(folder),
        "voices": {},
        "slots": 3,
        "positions": POSITIONS,
        "device": "cpu",
        "gpu": 0,
        "memory_share": None,
        "seed": None,
        "temperature": None,
        "top_p": None,
        "top_k": None,
        **options,
    }


def speaker(folder: Path, **options: Any) -> Any:
    from pipelines.stages.factories import create_higgs

    return create_higgs(**arguments(folder, **options))


def wav(seconds: float, hz: float = 220.0, rate_hz: int = 24_000, channels: int = 1) -> bytes:
    """A tone that swells."""
    import soundfile

    time = np.arange(int(seconds * rate_hz)) / rate_hz
    tone = np.sin(2 * np.pi * hz * time) * np.minimum(0.3, 0.1 + 0.05 * time)
    return file_of(np.stack([tone] * channels, 1), rate_hz, soundfile)


def file_of(samples: np.ndarray, rate_hz: int, soundfile: Any, subtype: str = "FLOAT") -> bytes:
    written = io.BytesIO()
    soundfile.write(written, samples.astype(np.float32), rate_hz, subtype, format="WAV")
    return written.getvalue()


def sample(seconds: float = 1.5, hz: float = 220.0) -> VoiceSample:
    return VoiceSample(wav(seconds, hz), "so it was")


class Driver:
    """A stage that several tests use, and the loop that it lives on."""

    def __init__(self, stage: Any) -> None:
        self._stage = stage
        self._runner = asyncio.Runner()
        self._bounded(lambda stage: stage.start(lambda _: None))

    def run(self, script: Callable[[Any], Any]) -> Any:
        found = self._bounded(script)
        assert self._stage.active == 0
        return found

    def close(self) -> None:
        with self._runner:
            self._bounded(lambda stage: stage.close())

    def _bounded(self, script: Callable[[Any], Any]) -> Any:
        async def main() -> Any:
            async with asyncio.timeout(PATIENCE_S):
                return await script(self._stage)

        return self._runner.run(main())


def run(stage: Any, script: Callable[[Any], Any]) -> Any:
    driver = Driver(stage)
    try:
        return driver.run(script)
    finally:
        driver.close()


async def say(stage: Any, *texts: str, slowly: bool = False, **wanted: Any) -> list[SpeechDelta]:
    """slowly: the reader lets the loop turn, and its stage run ahead, before each delta."""
    stream = stage.open(SpeakRequest("r", "", **wanted))
    for text in texts:
        await stream.push(text)
    await stream.finish()
    deltas: list[SpeechDelta] = []
    async for delta in stream:
        deltas.append(delta)
        for _ in range(200 if slowly else 0):
            await asyncio.sleep(0)
    return deltas


def sound(deltas: list[SpeechDelta]) -> Samples:
    return np.concatenate([np.zeros(0, np.float32), *(delta.samples for delta in deltas)])


async def heard(stage: Any, *texts: str, **wanted: Any) -> Samples:
    return sound(await say(stage, *(texts or TEXTS), **wanted))


async def refusal(stage: Any, **wanted: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        await say(stage, *TEXTS, **wanted)
    return caught.value
