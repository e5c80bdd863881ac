"""OpenAI's own Python SDK, unchanged, asks for speech over a real connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import openai
import pytest
from openai import AsyncOpenAI

from pipelines.types import VoiceSample
from tests.realtime.http.speech_server import (
    WORD_MS,
    House,
    Shelf,
    SpeechServer,
    audio_of,
    duration_s,
    events_of,
    make_cascade,
    on_server,
)
from tests.realtime.runtime.stand_ins import ScriptedCascade

TEXT = "One two three four five."
TEXT_S = 5 * WORD_MS / 1000
PCM_BYTES = int(TEXT_S * 24_000) * 2

Result = TypeVar("Result")


def with_sdk(
    test: Callable[[AsyncOpenAI], Coroutine[Any, Any, Result]], house: House | None = None
) -> Result:
    async def ask(server: SpeechServer) -> Result:
        url = f"http://127.0.0.1:{server.port}/v1"
        async with AsyncOpenAI(base_url=url, api_key="unused", max_retries=0) as sdk:
            return await test(sdk)

    return on_server(ask, house or House(make_cascade()))


def test_a_speech_is_written_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "speech.wav"

    async def ask(sdk: AsyncOpenAI) -> None:
        speech = await sdk.audio.speech.create(
            model="gpt-4o-mini-tts",
            voice="alloy",
            input=TEXT,
            instructions="Speak in a cheerful tone.",
            response_format="wav",
        )
        speech.write_to_file(path)

    with_sdk(ask)
    assert duration_s(path.read_bytes()) == pytest.approx(TEXT_S)


def test_a_speech_of_usual_format_and_other_speed() -> None:
    async def ask(sdk: AsyncOpenAI) -> bytes:
        speech = await sdk.audio.speech.create(
            model="tts-1", voice={"id": "mine"}, input=TEXT, speed=2.0
        )
        return speech.content

    house = House(make_cascade(), Shelf({"mine": VoiceSample(b"mine")}))
    assert duration_s(with_sdk(ask, house)) == pytest.approx(TEXT_S / 2, abs=0.025)


def test_a_speech_is_read_while_it_is_made() -> None:
    async def ask(sdk: AsyncOpenAI) -> bytes:
        async with sdk.audio.speech.with_streaming_response.create(
            model="gpt-4o-mini-tts", voice="coral", input=TEXT, response_format="pcm"
        ) as response:
            assert response.headers["content-type"] == "audio/pcm"
            taken = [data async for data in response.iter_bytes(1024)]
        assert len(taken) > 1
        return b"".join(taken)

    assert len(with_sdk(ask)) == PCM_BYTES


def test_a_speech_is_read_as_events() -> None:
    async def ask(sdk: AsyncOpenAI) -> str:
        async with sdk.audio.speech.with_streaming_response.create(
            model="gpt-4o-mini-tts",
            voice="marin",
            input=TEXT,
            response_format="pcm",
            stream_format="sse",
        ) as response:
            return "".join([f"{line}\n" async for line in response.iter_lines()])

    events = events_of(with_sdk(ask))
    assert len(audio_of(events)) == PCM_BYTES
    assert events[-1]["type"] == "speech.audio.done"


def test_fields_of_speech_models_pass_through() -> None:
    cascade = make_cascade()

    async def ask(sdk: AsyncOpenAI) -> None:
        await sdk.audio.speech.create(
            model="higgs",
            voice="default",
            input=TEXT,
            extra_body={"seed": 3, "ref_audio": "QUJD", "ref_text": "a b c"},
        )

    with_sdk(ask, House(cascade))
    (request,) = cascade.speaker.requests
    assert (request.drawing.seed, request.sample) == (3, VoiceSample(b"ABC", "a b c"))


def test_an_error_has_its_type_its_field_and_its_id() -> None:
    async def ask(sdk: AsyncOpenAI) -> openai.BadRequestError:
        with pytest.raises(openai.BadRequestError) as caught:
            await sdk.audio.speech.create(model="tts-1", voice="nobody", input=TEXT)
        return caught.value

    error = with_sdk(ask)
    assert (error.status_code, error.code, error.param) == (400, "unknown_voice", "voice")
    assert error.request_id is not None
    assert error.request_id.startswith("req_")


def test_a_speech_that_fails_on_its_way_is_no_speech() -> None:
    async def ask(sdk: AsyncOpenAI) -> None:
        with pytest.raises(openai.APIConnectionError):
            await sdk.audio.speech.create(model="tts-1", voice="alloy", input="word " * 60)

    with_sdk(ask, House(make_cascade(fail_after_words=50)))


def test_a_cancelled_call_ends_the_speech() -> None:
    cascade = ScriptedCascade()
    cascade.speech_gate = asyncio.Event()

    async def ask(sdk: AsyncOpenAI) -> None:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(
                sdk.audio.speech.create(model="tts-1", voice="alloy", input=TEXT)
            )
            while not cascade.active:
                await asyncio.sleep(0)
            call.cancel()
        while cascade.active:
            await asyncio.sleep(0)

    with_sdk(ask, House(cascade))
    assert cascade.speeches[0].is_aborted
