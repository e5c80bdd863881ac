"""Files of real speech, through the routes, the decoder, the cutter and the embedded recogniser."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import numpy as np
import pytest

from pipelines.stages.asr_whisper import WhisperRecogniser
from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.types import HEARING_RATE_HZ, RecogniseRequest, Samples
from tests.pipelines.stages.embedded import check, recording, started
from tests.realtime.audio.sound_files import encoded
from tests.realtime.http.transcription_rig import PATH, create_app, form_of
from tests.realtime.runtime.stand_ins import ScriptedCascade

pytestmark = pytest.mark.models

SENTENCES = {
    "train": "The train to the north leaves every morning at nine.",
    "sister": "My sister lives in a small house beside the river.",
    "weather": "Could you tell me what the weather will be like on Friday?",
    "bread": "We need some apples, some bread and a bottle of milk.",
    "piano": "He plays the piano every evening after dinner.",
}
MODEL = "tiny.en"  # the faster one


class EmbeddedEars(ScriptedCascade):
    """Hears with the embedded recogniser; nothing else."""

    def __init__(self, recogniser: WhisperRecogniser) -> None:
        super().__init__()
        self._recogniser = recogniser

    def recognise(self, request: RecogniseRequest) -> Any:
        return self._recogniser.open(request)


async def long_talk(lasts_s: float) -> tuple[Samples, list[str]]:
    """So much speech, and the words that mark its sentences, in order."""
    async with started(PiperSpeaker()) as speaker:
        said = {key: await recording(speaker, text, 0.3) for key, text in SENTENCES.items()}
    keys: list[str] = []
    parts: list[Samples] = []
    chance = np.random.default_rng(11)
    while sum(map(len, parts)) < lasts_s * HEARING_RATE_HZ:
        key = str(chance.choice([other for other in said if other not in keys[-1:]]))
        keys.append(key)
        parts.append(said[key])
    # A silence that is left out.
    parts.insert(5, np.zeros(20 * HEARING_RATE_HZ, np.float32))
    return np.concatenate(parts), keys


async def ask(client: httpx.AsyncClient, file: bytes, **fields: Any) -> Any:
    body, kind = form_of(fields, file)
    answer = await client.post(PATH, content=body, headers={"content-type": kind})
    assert answer.status_code == 200, answer.text
    return answer


def marks_in(text: str) -> list[str]:
    return [word for word in re.findall(r"[a-z]+", text.lower()) if word in SENTENCES]


@pytest.mark.parametrize("lasts_s", [60.0, pytest.param(180.0, marks=pytest.mark.soak)])
def test_minutes_come_out_in_order(lasts_s: float) -> None:
    async def main() -> None:
        audio, keys = await long_talk(lasts_s)
        file = await asyncio.to_thread(encoded, audio, "mp3")
        async with started(WhisperRecogniser(MODEL)) as recogniser:
            transport = httpx.ASGITransport(create_app(EmbeddedEars(recogniser)))
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", timeout=None
            ) as client:
                answer = await ask(client, file, response_format="verbose_json")
        told = answer.json()
        assert told["language"] == "en"
        assert told["duration"] == pytest.approx(len(audio) / HEARING_RATE_HZ, abs=0.1)
        found = marks_in(told["text"])
        # A word may be misheard; none may be out of its place.
        assert len(found) >= 0.75 * len(keys)
        rest = iter(keys)
        assert all(word in rest for word in found)
        segments = told["segments"]
        assert " ".join(segment["text"] for segment in segments) == told["text"]
        ends = [(segment["start"], segment["end"]) for segment in segments]
        assert ends == sorted(ends)
        assert all(start < end for start, end in ends)
        assert ends[-1][1] == pytest.approx(told["duration"], abs=2.0)

    check(main)


def test_noise_has_no_text() -> None:
    async def main() -> None:
        noise = np.random.default_rng(2).standard_normal(20 * HEARING_RATE_HZ) * 0.01
        async with started(WhisperRecogniser(MODEL)) as recogniser:
            transport = httpx.ASGITransport(create_app(EmbeddedEars(recogniser)))
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", timeout=None
            ) as client:
                answer = await ask(client, encoded(noise.astype(np.float32)), language="en")
        assert answer.json()["text"] == ""

    check(main)
