"""Speech over a real connection: what comes early, what breaks off, and who has gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from realtime.http import lingering, outlet
from realtime.protocol.json_text import compact
from tests.realtime.http.speech_server import (
    BATCH,
    PATH,
    PATIENCE_S,
    House,
    Shelf,
    SpeechServer,
    audio_of,
    events_of,
    make_cascade,
    on_server,
    until_idle,
)
from tests.realtime.runtime.stand_ins import ScriptedCascade

# Far more than a connection's buffers hold, so that it cannot have been made by the way.
LONG_TEXT = "word " * 20_000
WAYS: list[dict[str, Any]] = [
    {"response_format": "pcm"},
    {"response_format": "wav", "stream": True},
    {"response_format": "flac", "stream": True},
    {"response_format": "pcm", "stream_format": "sse"},
]


def body_of(**fields: Any) -> bytes:
    return json.dumps({"model": "tts-1", "voice": "alloy"} | fields).encode()


class Caller:
    """A client that does only what a test says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def calls(cls, server: SpeechServer, path: str, body: bytes, **more: str) -> Caller:
        caller = cls(*await asyncio.open_connection("127.0.0.1", server.port))
        headers = {"Host": "127.0.0.1", "Content-Type": "application/json"}
        headers |= {"Content-Length": str(len(body))} | more
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        caller.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await caller.writer.drain()
        return caller

    def hangs_up(self) -> None:
        self.writer.transport.abort()


@pytest.mark.parametrize("way", WAYS)
def test_sound_is_sent_before_the_rest_is_made(way: dict[str, Any]) -> None:
    cascade = make_cascade()

    async def ask(server: SpeechServer) -> float:
        body = {"input": LONG_TEXT} | way
        async with server.client.stream("POST", PATH, json=body) as answer:
            assert answer.status_code == 200
            assert answer.headers["transfer-encoding"] == "chunked"
            async for _ in answer.aiter_raw(1):
                return cascade.speaker.made_words / 20_000
        raise AssertionError("nothing came")

    assert on_server(ask, House(cascade)) < 1 / 3


@pytest.mark.parametrize("way", WAYS)
def test_whoever_goes_in_the_middle_of_a_speech_ends_it(way: dict[str, Any]) -> None:
    cascade = make_cascade()

    async def ask(server: SpeechServer) -> None:
        caller = await Caller.calls(server, PATH, body_of(input=LONG_TEXT, **way))
        assert (await caller.reader.readline()).startswith(b"HTTP/1.1 200")
        assert cascade.active
        caller.hangs_up()
        await until_idle(cascade)
        assert cascade.speaker.made_words < 20_000

    on_server(ask, House(cascade))


@pytest.mark.parametrize("way", [{}, {"response_format": "wav"}, {"stream_format": "sse"}])
def test_whoever_goes_before_the_first_sound_ends_it(way: dict[str, Any]) -> None:
    cascade = ScriptedCascade()
    cascade.speech_gate = asyncio.Event()

    async def ask(server: SpeechServer) -> None:
        caller = await Caller.calls(server, PATH, body_of(input="Hi.", **way))
        await until(lambda: bool(cascade.speeches))
        caller.hangs_up()
        await until_idle(cascade)
        assert cascade.speeches[0].is_aborted

    on_server(ask, House(cascade))


def test_whoever_goes_while_a_recording_is_fetched_asks_for_no_voice() -> None:
    cascade = ScriptedCascade()
    fetching = asyncio.Event()
    cancelled = asyncio.Event()

    class Slow(Shelf):
        async def fetch(self, url: str, field: str) -> bytes:
            fetching.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return b""

    async def ask(server: SpeechServer) -> None:
        body = body_of(input="Hi.", ref_audio="https://voices.example/slow.wav")
        caller = await Caller.calls(server, PATH, body)
        await fetching.wait()
        caller.hangs_up()
        await cancelled.wait()
        assert cascade.speak_requests == []

    on_server(ask, House(cascade, Slow()))


def test_whoever_goes_ends_a_batch() -> None:
    cascade = ScriptedCascade()
    cascade.speech_gate = asyncio.Event()

    async def ask(server: SpeechServer) -> None:
        body = compact({"items": [{"input": "Hi."}] * 5}).encode()
        caller = await Caller.calls(server, BATCH, body)
        await until(lambda: cascade.active == 2)
        caller.hangs_up()
        await until_idle(cascade)
        assert [speech.is_aborted for speech in cascade.speeches] == [True, True]

    on_server(ask, House(cascade))


def test_whoever_goes_while_sending_is_forgotten() -> None:
    cascade = make_cascade()

    async def ask(server: SpeechServer) -> None:
        headers = {"Content-Length": "1000"}
        caller = await Caller.calls(server, PATH, b'{"input": "Half', **headers)
        caller.hangs_up()
        assert (await server.speak(input="Hi.")).status_code == 200

    on_server(ask, House(cascade))
    assert len(cascade.speaker.requests) == 1


def test_a_client_that_reads_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "SEND_TIMEOUT_S", 0.05)
    cascade = make_cascade()

    async def ask(server: SpeechServer) -> None:
        caller = await Caller.calls(server, PATH, body_of(input=LONG_TEXT, response_format="pcm"))
        await until(lambda: cascade.speaker.made_words > 0)
        await until_idle(cascade)
        assert cascade.speaker.made_words < 20_000
        caller.hangs_up()

    on_server(ask, House(cascade))


@pytest.mark.parametrize("way", WAYS[:3])
def test_a_speech_that_fails_in_the_middle_breaks_off(
    way: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    cascade = make_cascade(fail_after_words=50)

    async def ask(server: SpeechServer) -> int:
        taken = 0
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
            body = {"input": "word " * 60} | way
            async with server.client.stream("POST", PATH, json=body) as answer:
                assert answer.status_code == 200
                async for data in answer.aiter_raw():
                    taken += len(data)
        return taken

    assert on_server(ask, House(cascade)) > 0
    assert "broke off" in caplog.text


def test_one_connection_serves_one_request_after_the_other() -> None:
    async def ask(server: SpeechServer) -> None:
        for _ in range(2):
            for way in ({}, {"response_format": "wav"}, {"stream_format": "sse"}, {"speed": 9}):
                await server.speak(input="Good day.", **way)
            await server.batch(items=[{"input": "Good day."}, {}])
        events = events_of((await server.speak(input="Hi.", stream_format="sse")).text)
        assert audio_of(events)

    on_server(ask, House(make_cascade()))


def test_a_gigabyte_is_refused_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering, "LINGER_S", 0.01)

    async def ask(server: SpeechServer) -> bytes:
        caller = await Caller.calls(server, PATH, b"{", **{"Content-Length": "1000000000"})
        answer = await caller.reader.read()  # to the end: the server closes the connection
        caller.hangs_up()
        return answer

    head, body = on_server(ask, House(make_cascade())).split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413")
    assert json.loads(body)["error"]["code"] == "request_too_large"


def test_forty_requests_at_once_are_told_apart() -> None:
    async def ask(server: SpeechServer) -> None:
        async def one(words: int) -> None:
            answer = await server.speak(input="word " * words, response_format="pcm")
            assert len(answer.content) == words * 4800 * 2

        async with asyncio.TaskGroup() as group:
            for words in range(1, 41):
                group.create_task(one(words))

    on_server(ask, House(make_cascade()))


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0)
