"""The socket of speech: what a client writes, and what it hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.ports import Cascade
from pipelines.types import Drawing, SpeakRequest, SpeechDelta, StageError, WordEnd
from tests.realtime.http.speech_socket_server import (
    SAMPLE,
    House,
    SpeechClient,
    speech_client,
    speech_server,
)
from tests.realtime.runtime.stand_ins import ScriptedCascade, ScriptedSpeech, tone

TEXT = "Hello there, this is written token by token. When it is done it is done."
WORD_MS = 300  # of the scripted voice
Act = Callable[[SpeechClient], Awaitable[None]]


def talk(cascade: Cascade, act: Act, house: House | None = None) -> SpeechClient:
    """One client's visit, from connecting to leaving; nothing may stay of it."""

    async def run() -> SpeechClient:
        async with speech_server(cascade, house=house) as url, speech_client(url) as client:
            await act(client)
            assert cascade.active == 0
        return client

    return asyncio.run(run())


def statuses(client: SpeechClient) -> list[str]:
    events = [message for message in client.came if isinstance(message, dict)]
    return [event["status"] for event in events if event["type"] == "audio.done"]


async def refused(client: SpeechClient, kind: str, **fields: Any) -> tuple[str, str | None]:
    await client.say(kind, **fields)
    error = await client.until("error")
    assert error["message"]
    return error["code"], error["param"]


def test_text_written_a_letter_at_a_time_is_one_request_with_its_words_before_its_audio() -> None:
    async def act(client: SpeechClient) -> None:
        await client.say("session.config", word_timestamps=True)
        await client.append(*TEXT)
        await client.say("input.done")
        done = await client.until("audio.done")
        assert done["status"] == "completed"
        assert done["duration_ms"] == len(TEXT.split()) * WORD_MS
        assert done["usage"]["input_tokens"] == len(TEXT)

    cascade = FakeCascade()
    client = talk(cascade, act)
    assert len(cascade.speaker.requests) == 1
    assert client.kinds[:3] == ["session.created", "session.updated", "audio.start"]
    assert client.kinds[3:-1] == ["audio.words", "audio"] * len(TEXT.split())
    assert client.came[2] == {"type": "audio.start", "format": "pcm", "sample_rate": 24_000}
    assert len(client.samples) == len(TEXT.split()) * WORD_MS * 24
    ends = [word["end_ms"] for word in client.words]
    assert ends == [WORD_MS * number for number in range(1, len(ends) + 1)]
    places = [word["text_end"] for word in client.words]
    assert places == sorted(places)
    assert places[-1] == len(TEXT)


def test_each_word_is_told_once_and_pauses_are_not() -> None:
    """A voice tells a pause as an end with the place of the word before it."""

    class Pausing(ScriptedSpeech):
        async def _speak(self) -> AsyncIterator[SpeechDelta]:
            ends = [(0, 0), (100, 3), (200, 3), (500, 7)], [(10, 7), (300, 13)]
            for told in ends:
                words = tuple(WordEnd(24 * at_ms, place) for at_ms, place in told)
                yield SpeechDelta(tone(500), 24_000, told[-1][1], words)

    class PausingCascade(ScriptedCascade):
        def speak(self, request: SpeakRequest) -> ScriptedSpeech:
            return Pausing(self)

    async def act(client: SpeechClient) -> None:
        await client.say("session.config", word_timestamps=True)
        await client.append("one two three")
        await client.say("input.done")
        await client.until("audio.done")

    words = talk(PausingCascade(), act).words
    assert [(word["end_ms"], word["text_end"]) for word in words] == [(100, 3), (500, 7), (800, 13)]


def test_without_a_configuration_there_are_no_words() -> None:
    async def act(client: SpeechClient) -> None:
        await client.append(TEXT)
        await client.say("input.done")
        await client.until("audio.done")

    assert "audio.words" not in talk(FakeCascade(), act).kinds


def test_a_flush_speaks_what_has_come_though_the_sentence_goes_on() -> None:
    async def act(client: SpeechClient) -> None:
        await client.append("I", " would")
        await client.say("input.flush")
        await client.until("audio")
        await client.append(" say")
        await client.say("input.done")
        await client.until("audio.done")

    client = talk(FakeCascade(), act)
    assert len(client.samples) == 3 * WORD_MS * 24


def test_a_cancel_silences_at_once_and_the_socket_goes_on() -> None:
    cascade = FakeCascade(speaker=FakeSpeaker(real_time_factor=0.05))

    async def act(client: SpeechClient) -> None:
        await client.append("word " * 2000)
        await client.until("audio")
        await client.say("input.cancel")
        done = await client.until("audio.done")
        assert cascade.active == 0
        assert done["status"] == "cancelled"
        assert 0 < done["duration_ms"] < 2000 * WORD_MS
        heard = len(client.audio)
        await client.append("Two words.")
        await client.say("input.done")
        done = await client.until("audio.done")
        assert (done["status"], done["duration_ms"]) == ("completed", 2 * WORD_MS)
        assert len(client.audio) - heard == 2 * WORD_MS * 24 * 2

    client = talk(cascade, act)
    assert client.kinds[-4:] == ["audio.done", "audio.start", "audio", "audio.done"]


def test_a_cancel_of_nothing_does_nothing() -> None:
    async def act(client: SpeechClient) -> None:
        await client.say("input.cancel")
        await client.append("one")
        await client.say("input.done")
        await client.until("audio.done")
        await client.say("input.cancel")
        await client.say("input.done")
        await client.until("audio.done")

    client = talk(ScriptedCascade(), act)
    assert statuses(client) == ["completed", "completed"]


def test_requests_written_ahead_are_spoken_in_order_each_with_its_own_end() -> None:
    cascade = ScriptedCascade()

    async def act(client: SpeechClient) -> None:
        for text in ("done", "flush", "three"):
            await client.append(text)
            await client.say("input.done")
        await client.say("input.done")
        for _ in range(4):
            await client.until("audio.done")

    client = talk(cascade, act)
    assert client.kinds[1:] == [*["audio.start", "audio", "audio.done"] * 3, "audio.done"]
    assert statuses(client) == ["completed"] * 4
    assert [speech.pushed for speech in cascade.speeches] == [["done"], ["flush"], ["three"]]
    assert len({request.request_id for request in cascade.speak_requests}) == 3


def test_a_configuration_holds_from_the_next_request_on() -> None:
    cascade = ScriptedCascade()

    async def act(client: SpeechClient) -> None:
        await client.append("first")
        assert await refused(client, "session.config", speed=2.0) == ("config_too_late", "type")
        await client.say("input.done")
        await client.say(
            "session.config", voice="mine", speed=2.0, seed=7, temperature=1, response_format="wav"
        )
        await client.append("second")
        await client.say("input.done")
        assert (await client.until("audio.done"))["duration_ms"] == 100
        assert (await client.until("audio.done"))["duration_ms"] == 50

    client = talk(cascade, act)
    first, second = cascade.speak_requests
    assert (first.sample, first.drawing) == (None, Drawing())
    assert (second.voice, second.sample) == ("default", SAMPLE)
    assert second.drawing == Drawing(temperature=1, seed=7)
    starts = [m for m in client.came if isinstance(m, dict) and m["type"] == "audio.start"]
    assert [start["format"] for start in starts] == ["pcm", "wav"]
    assert b"RIFF" in client.audio


def test_words_are_told_at_the_speed_at_which_they_are_heard() -> None:
    async def act(client: SpeechClient) -> None:
        await client.say("session.config", speed=1.5, word_timestamps=True)
        await client.append("one two three")
        await client.say("input.done")
        assert (await client.until("audio.done"))["duration_ms"] == 600

    assert [word["end_ms"] for word in talk(FakeCascade(), act).words] == [200, 400, 600]


@pytest.mark.parametrize(
    ("format", "beginning", "rate_hz"),
    [("wav", b"RIFF", 24_000), ("opus", b"OggS", 48_000), ("flac", b"fLaC", 24_000)],
)
def test_every_format_is_a_stream_of_its_own(format: str, beginning: bytes, rate_hz: int) -> None:
    async def act(client: SpeechClient) -> None:
        await client.say("session.config", response_format=format)
        await client.append("one two three")
        await client.say("input.done")
        start = await client.until("audio.start")
        assert start == {"type": "audio.start", "format": format, "sample_rate": rate_hz}
        assert (await client.until("audio.done"))["duration_ms"] == 900

    assert talk(FakeCascade(), act).audio.startswith(beginning)


def test_what_cannot_be_read_is_told_and_the_socket_goes_on() -> None:
    async def act(client: SpeechClient) -> None:
        for frame in ('{"type":', "[]", '{"type": "input.append", "text": "a", "text": "b"}'):
            await client.connection.send(frame)
            assert (await client.until("error"))["param"] is None
        await client.connection.send(b"\x00\x01")
        assert (await client.until("error"))["code"] == "invalid_event"
        assert await refused(client, "input.sing") == ("invalid_value", "type")
        assert await refused(client, "input.append") == ("missing_required_parameter", "text")
        assert await refused(client, "input.append", text=3) == ("invalid_type", "text")
        assert await refused(client, "input.append", text="a" * 2**20 + "b") == (
            "invalid_value",
            "text",
        )
        await client.append("one")
        await client.say("input.done")
        await client.until("audio.done")

    assert statuses(talk(ScriptedCascade(), act)) == ["completed"]


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"voice": "nobody"}, "unknown_voice", "voice"),
        ({"voice": "mine"}, "copying_unsupported", "voice"),
        ({"speed": 9}, "invalid_value", "speed"),
        ({"seed": -1}, "invalid_value", "seed"),
        ({"response_format": "midi"}, "invalid_value", "response_format"),
        ({"word_timestamps": "yes"}, "invalid_type", "word_timestamps"),
        ({"references": []}, "unknown_parameter", "references"),
    ],
)
def test_a_wrong_configuration_names_its_field(
    fields: dict[str, Any], code: str, param: str
) -> None:
    async def act(client: SpeechClient) -> None:
        assert await refused(client, "session.config", **fields) == (code, param)

    cascade = ScriptedCascade()
    cascade.copies_voices = False
    talk(cascade, act)


def test_a_wrong_word_is_told_with_its_field_what_it_takes_and_a_hint() -> None:
    async def act(client: SpeechClient) -> None:
        await client.say("session.config", response_format="ogg")
        assert (await client.until("error"))["message"] == (
            "Invalid 'response_format': expected one of mp3, opus, aac, flac, wav, pcm, but got "
            "'ogg' instead. Ogg is sent as 'opus'."
        )

    talk(ScriptedCascade(), act)


@pytest.mark.parametrize("text", ["🙂 🎉", "?!...", "\n"])
def test_a_text_in_which_nothing_can_be_spoken_is_told_so_and_the_socket_goes_on(text: str) -> None:
    async def act(client: SpeechClient) -> None:
        await client.append(text)
        await client.say("input.flush")
        await client.say("input.done")
        error = await client.until("error")
        assert (error["code"], error["param"]) == ("input_not_speakable", "text")
        await client.append(text, "One.")
        await client.say("input.done")
        await client.until("audio.done")
        await client.until("audio.done")

    client = talk(FakeCascade(), act)
    assert client.kinds[1:] == ["error", "audio.done", "audio.start", "audio", "audio.done"]
    assert statuses(client) == ["failed", "completed"]


def test_what_is_null_is_left_out_and_usual_names_stand_for_the_first_voice() -> None:
    async def act(client: SpeechClient) -> None:
        await client.say("session.config", voice="alloy", speed=None, response_format=None)
        config = (await client.until("session.updated"))["config"]
        assert (config["speed"], config["response_format"]) == (1.0, "pcm")
        await client.append("one")
        await client.say("input.done")
        await client.until("audio.done")

    cascade = ScriptedCascade()
    talk(cascade, act)
    assert cascade.speak_requests[0].voice == "default"


def test_a_book_in_one_message_is_spoken_whole() -> None:
    cascade = ScriptedCascade()
    book = "It was a dark night. " * 20_000

    async def act(client: SpeechClient) -> None:
        await client.append(book)
        await client.say("input.done")
        await client.until("audio.done")

    talk(cascade, act)
    assert "".join(map(str, cascade.speeches[0].pushed)) == book


def test_a_failing_voice_ends_its_request_and_no_other() -> None:
    cascade = FakeCascade(speaker=FakeSpeaker(fail_after_words=2.5))

    async def act(client: SpeechClient) -> None:
        await client.append("One two three. ", "Four five.")
        await client.say("input.flush")
        assert (await client.until("error"))["code"] == "tts_failed"
        assert (await client.until("audio.done"))["status"] == "failed"
        await client.append("What comes late of it ", "is dropped.")
        await client.say("input.flush")
        await client.say("input.done")
        await client.append("One, two.")
        await client.say("input.done")
        await client.until("audio.done")

    client = talk(cascade, act)
    assert statuses(client) == ["failed", "completed"]
    assert len(client.samples) == 4.5 * WORD_MS * 24


def test_a_failure_after_the_last_text_leaves_the_next_request_alone() -> None:
    cascade = ScriptedCascade()
    cascade.speech_error = StageError("voice_sample_refused", "The recording is too short.")

    async def act(client: SpeechClient) -> None:
        await client.say("session.config", voice="mine")
        for text in ("one", "two"):
            await client.append(text)
            await client.say("input.done")
        for _ in range(2):
            error = await client.until("error")
            assert (error["code"], error["param"]) == ("voice_sample_refused", "voice")

    talk(cascade, act)
    assert [speech.pushed for speech in cascade.speeches] == [["one"], ["two"]]
