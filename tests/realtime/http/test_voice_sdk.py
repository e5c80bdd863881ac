"""OpenAI's SDK keeps and deletes voices here as it does there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import openai
import pytest

from tests.realtime.http.voice_desk import CONSENT, DATA, Desk


def test_the_sdk_creates_and_deletes_a_voice(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "voices", keys=("a-key-of-sixteen-characters",))

    def use(url: str) -> None:
        with openai.OpenAI(
            base_url=f"{url}/v1", api_key="a-key-of-sixteen-characters", max_retries=0
        ) as client:
            voices = client.audio.voices
            voice = voices.create(
                audio_sample=("anna.wav", DATA, "audio/wav"), consent=CONSENT, name="anna"
            )
            assert (voice.id, voice.name, voice.object) == ("anna", "anna", "audio.voice")
            assert voice.type == "audio_sample" and voice.created_at > 1_700_000_000
            assert desk.shelf.find("anna") is not None
            with pytest.raises(openai.ConflictError) as caught:
                voices.create(audio_sample=("a.wav", DATA), consent=CONSENT, name="anna")
            assert (caught.value.code, caught.value.param) == ("voice_exists", "name")
            gone = voices.delete("anna")
            assert gone.deleted and gone.object == "audio.voice.deleted"
            with pytest.raises(openai.NotFoundError):
                voices.delete("anna")

    async def run() -> None:
        async with desk.serve() as url:
            await asyncio.to_thread(use, url)

    asyncio.run(run())
    desk.shelf.close()
