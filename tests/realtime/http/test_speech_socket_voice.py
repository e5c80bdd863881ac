"""The socket of speech with the embedded voice."""

from __future__ import annotations

import asyncio

import pytest

from pipelines.cascade import CascadeOptions, VoiceCascade
from pipelines.fakes.hearing import FakeDetectorStage, FakeJudge, FakeRecogniser
from pipelines.fakes.writer import FakeWriter
from pipelines.stages.tts_piper import PiperSpeaker
from tests.realtime.http.speech_socket_server import speech_client, speech_server

FIRST = "The harbour was quiet that morning."
SECOND = " Nobody had told the captain, of course."


@pytest.mark.models
def test_a_sentence_is_heard_while_the_next_is_still_to_be_written() -> None:
    async def run() -> None:
        cascade = VoiceCascade(
            FakeDetectorStage(),
            FakeJudge(),
            FakeRecogniser(),
            FakeWriter(),
            PiperSpeaker(),
            CascadeOptions(("joe",), "script"),
        )
        async with speech_server(cascade) as url, speech_client(url) as client:
            await client.say("session.config", word_timestamps=True)
            await client.append(*FIRST)
            await client.say("input.flush")
            await client.until("audio")
            await client.append(*SECOND)
            await client.say("input.done")
            done = await client.until("audio.done")
            assert client.kinds.count("audio.start") == 1
        text = FIRST + SECOND
        spoken = [text[: word["text_end"]].split()[-1] for word in client.words]
        assert spoken == text.split()
        ends = [word["end_ms"] for word in client.words]
        assert ends == sorted(ends)
        assert 2000 < ends[-1] <= done["duration_ms"] < 6000
        assert float(abs(client.samples).max()) > 0.1

    asyncio.run(run())
