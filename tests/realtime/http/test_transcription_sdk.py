"""The official SDK, unmodified, on a socket: transcriptions plain, timed and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from tests.realtime.audio.sound_files import encoded, hum
from tests.realtime.http.transcription_rig import PATH, Listener, serving, talk

MODEL = "whisper-1"
LEFT_S = 20.0
TALK = ("talk.wav", encoded(hum(2.0)))
LONG = ("talk.flac", encoded(talk(3), "flac"))


def drive(cascade: Listener, use: Callable[[AsyncOpenAI], Awaitable[None]]) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(LEFT_S),
            serving(cascade) as address,
            AsyncOpenAI(api_key="none", base_url=f"{address}/v1", max_retries=0) as client,
        ):
            await use(client)
        assert cascade.active == 0

    asyncio.run(main())


def test_plain() -> None:
    async def use(client: AsyncOpenAI) -> None:
        told = await client.audio.transcriptions.create(file=TALK, model=MODEL, temperature=0)
        assert told.text == "Good day."
        assert told.usage is not None and told.usage.type == "duration"
        assert told.usage.seconds == 2.0

    drive(Listener(), use)


def test_verbose_with_words_and_segments() -> None:
    async def use(client: AsyncOpenAI) -> None:
        told = await client.audio.transcriptions.create(
            file=LONG,
            model=MODEL,
            language="en",
            response_format="verbose_json",
            timestamp_granularities=["word", "segment"],
        )
        assert (told.text, told.language, told.duration) == ("One. Two. Three.", "en", 61.5)
        assert told.words is not None and told.segments is not None
        assert [word.word for word in told.words] == ["One", "Two", "Three"]
        assert [segment.text for segment in told.segments] == ["One.", "Two.", "Three."]
        assert told.words[1].start == told.segments[1].start > 20

    drive(Listener("One.", "Two.", "Three."), use)


@pytest.mark.parametrize(
    ("form", "start"), [("srt", "1\n00:00:00,000 --> "), ("vtt", "WEBVTT\n\n"), ("text", "Good")]
)
def test_what_is_no_json_is_a_string(form: str, start: str) -> None:
    async def use(client: AsyncOpenAI) -> None:
        told = await client.audio.transcriptions.create(
            file=TALK,
            model=MODEL,
            response_format=form,  # type: ignore[arg-type]
        )
        assert isinstance(told, str)
        assert told.startswith(start)

    drive(Listener(), use)


def test_streamed() -> None:
    async def use(client: AsyncOpenAI) -> None:
        stream = await client.audio.transcriptions.create(file=LONG, model=MODEL, stream=True)
        deltas: list[str] = []
        async for event in stream:
            if event.type == "transcript.text.delta":
                deltas.append(event.delta)
            else:
                assert event.type == "transcript.text.done"
                assert event.text == "".join(deltas)
        assert deltas == ["One.", " Two.", " Three."]

    drive(Listener("One.", "Two.", "Three."), use)


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")  # the SDK would rather not
def test_translated() -> None:
    async def use(client: AsyncOpenAI) -> None:
        told = await client.audio.translations.create(file=TALK, model=MODEL)
        assert told.text == "Good day."

    drive(Listener(), use)


def test_an_error_is_the_sdk_s_own() -> None:
    async def use(client: AsyncOpenAI) -> None:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.audio.transcriptions.create(file=("a.wav", b"text"), model=MODEL)
        assert (refused.value.code, refused.value.param) == ("invalid_audio", "file")

    drive(Listener(), use)


def test_a_client_that_hangs_up_ends_the_work() -> None:
    async def main() -> None:
        cascade = Listener()
        cascade.recognise_gate = asyncio.Event()
        async with asyncio.timeout(LEFT_S), serving(cascade) as address:
            async with httpx.AsyncClient(base_url=address) as client:
                asking = asyncio.ensure_future(client.post(PATH, files={"file": TALK}))
                await cascade.has_heard.wait()
                asking.cancel()
                await asyncio.wait([asking])
            while cascade.active:
                await asyncio.sleep(0.001)
        assert cascade.streams[0].is_aborted

    asyncio.run(main())
