"""Pushed text with the real embedded voice."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.cascade import CascadeOptions, VoiceCascade
from pipelines.fakes.hearing import FakeDetectorStage, FakeJudge, FakeRecogniser
from pipelines.fakes.writer import FakeWriter
from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.types import SpeakRequest
from tests.pipelines.stages.embedded import check, freed, outputs, started

pytestmark = pytest.mark.models

TEXT = "It costs **$5.20**, I think. See [the page](https://a.example/b) for `code`. 🙂"


def cascade() -> VoiceCascade:
    parts = FakeDetectorStage(), FakeJudge(), FakeRecogniser(), FakeWriter(), PiperSpeaker()
    return VoiceCascade(*parts, CascadeOptions(("joe",), "script"))


def test_pushed_text_becomes_sound_that_covers_it() -> None:
    async def main() -> None:
        async with started(cascade()) as voice:
            assert not voice.copies_voices
            deltas = await outputs(voice.speak(SpeakRequest("r", "joe")), TEXT)
            ends = [delta.text_end for delta in deltas]
            assert ends == sorted(ends) and ends[-1] == len(TEXT)
            seconds = sum(len(delta.samples) for delta in deltas) / deltas[0].rate_hz
            assert 2.5 < seconds < 9.0
            assert np.abs(np.concatenate([delta.samples for delta in deltas])).max() > 0.1
            assert await outputs(voice.speak(SpeakRequest("r", "joe")), ["🙂 "]) == []
            await freed(voice)

    check(main)


def test_an_abort_in_the_middle_frees_the_voice() -> None:
    async def main() -> None:
        async with started(cascade()) as voice:
            stream = voice.speak(SpeakRequest("r", "joe"))
            await stream.push("and so it went on for a while, " * 50)
            await stream.finish()
            async for _ in stream:
                stream.abort()
            await freed(voice)
            assert voice.speech_abort_latency.count == 1

    check(main)
