"""Speech over a connection with the embedded voice."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from typing import Any

import av
import pytest

from pipelines.cascade import CascadeOptions, VoiceCascade
from pipelines.fakes.hearing import FakeDetectorStage, FakeJudge, FakeRecogniser
from pipelines.fakes.writer import FakeWriter
from pipelines.ports import SpeechStream
from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.types import SpeakRequest, SpeechDelta
from realtime.audio.encoding import SPEECH_FORMATS
from tests.realtime.http.speech_server import PATH, House, SpeechServer, on_server

pytestmark = pytest.mark.models

SENTENCE = "The ship left the harbour at dawn, and nobody on the quay waved. "
CODEC_FRAME_S = 0.025  # the longest of any codec here


class Watched:
    """A speech, and how much of it has been made until now."""

    def __init__(self, stream: SpeechStream) -> None:
        self._stream = stream
        self.made_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aiter__(self) -> AsyncIterator[SpeechDelta]:
        async for delta in self._stream:
            self.made_s += len(delta.samples) / delta.rate_hz
            yield delta


class WatchedCascade(VoiceCascade):
    def __init__(self) -> None:
        parts = FakeDetectorStage(), FakeJudge(), FakeRecogniser(), FakeWriter(), PiperSpeaker()
        super().__init__(*parts, CascadeOptions(("joe",), "script"))
        self.speeches: list[Watched] = []

    def speak(self, request: SpeakRequest) -> Any:
        self.speeches.append(Watched(super().speak(request)))
        return self.speeches[-1]


def decoded_s(data: bytes) -> float:
    with av.open(io.BytesIO(data), "r") as container:
        return sum(frame.samples / frame.sample_rate for frame in container.decode(audio=0))


def test_the_first_bytes_come_before_a_third_is_made() -> None:
    cascade = WatchedCascade()

    async def ask(server: SpeechServer) -> float:
        body = {"input": SENTENCE * 5, "response_format": "mp3"}
        async with server.client.stream("POST", PATH, json=body) as answer:
            pieces = answer.aiter_raw()
            await anext(pieces)
            made_s = cascade.speeches[0].made_s
            async for _ in pieces:
                pass
        return made_s

    made_s = on_server(ask, House(cascade))
    assert 0 < made_s < cascade.speeches[0].made_s / 3


def test_every_format_is_as_long_as_what_was_said() -> None:
    cascade = WatchedCascade()

    async def ask(server: SpeechServer) -> None:
        for format in SPEECH_FORMATS.keys() - {"pcm"}:
            for stream in (True, False):
                answer = await server.speak(
                    input="Good day.", response_format=format, stream=stream
                )
                seen_s = decoded_s(answer.content)
                said_s = cascade.speeches[-1].made_s
                assert seen_s == pytest.approx(said_s, abs=CODEC_FRAME_S), (format, stream)

    on_server(ask, House(cascade))


def test_with_a_seed_the_same_text_sounds_the_same_however_it_is_sent() -> None:
    async def ask(server: SpeechServer) -> list[bytes]:
        body = {"input": SENTENCE, "response_format": "pcm"}
        answers = [
            await server.speak(**body, seed=5, stream=False),
            await server.speak(**body, seed=5, stream=True),
            await server.speak(**body),
        ]
        return [answer.content for answer in answers]

    whole, streamed, by_chance = on_server(ask, House(WatchedCascade()))
    assert whole == streamed != by_chance
