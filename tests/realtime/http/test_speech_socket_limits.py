"""The socket of speech: who may use it, and what becomes of clients that are slow, or gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.ports import Cascade
from pipelines.types import SpeakRequest
from realtime.access.client_secret import ClientSecret
from realtime.access.keyring import KeyRing, Pass
from realtime.http.readiness import Phase, Readiness
from realtime.http.speech_socket import routes as speech_socket
from realtime.http.speech_socket.session import Patience
from realtime.transports import socket_protocol
from tests.realtime.http.speech_socket_server import (
    PATIENCE_S,
    House,
    SpeechClient,
    speech_client,
    speech_server,
)
from tests.realtime.runtime.stand_ins import ScriptedCascade, ScriptedSpeech

KEY = "a-key-of-sixteen-characters"
LOUD_WORD_MS = 4000.0  # 192 kB each: a few dozen fill every buffer of the network
MANY_WORDS = 200


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.005)


def visit(
    cascade: Cascade,
    act: Callable[[SpeechClient], Awaitable[None]],
    patience: Patience | None = None,
) -> SpeechClient:
    async def run() -> SpeechClient:
        async with speech_server(cascade, patience) as url, speech_client(url) as client:
            await act(client)
        return client

    return asyncio.run(run())


async def ending(client: SpeechClient) -> int | None:
    """Read to the end; the code that the server closes with."""
    try:
        while True:
            await client.next()
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else None


def test_a_client_that_reads_slowly_has_the_voice_rest_and_loses_nothing() -> None:
    speaker = FakeSpeaker(ms_per_word=LOUD_WORD_MS)

    async def act(client: SpeechClient) -> None:
        await client.append("word " * MANY_WORDS)
        await client.say("input.done")
        made = -1
        while made != speaker.made_words or made == 0:
            made = speaker.made_words
            for _ in range(20):  # a voice that works makes a word in one of them
                await asyncio.sleep(0.005)
        assert made < MANY_WORDS
        done = await client.until("audio.done")
        assert done["status"] == "completed"

    client = visit(FakeCascade(speaker=speaker), act)
    assert len(client.samples) == MANY_WORDS * LOUD_WORD_MS * 24


def test_a_client_that_reads_too_late_has_what_was_sent_and_is_told_why_no_more_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also one that is still writing when its request has been given up."""
    cascade = FakeCascade(speaker=FakeSpeaker(ms_per_word=LOUD_WORD_MS))

    async def act(client: SpeechClient) -> None:
        await client.append("word " * MANY_WORDS)
        await until(lambda: cascade.active > 0)
        await until(lambda: cascade.active == 0)
        for _ in range(20):  # more than the network holds
            await client.append("word " * 100_000)
        assert await ending(client) == 1008

    client = visit(cascade, act, Patience(unread_s=0.2, late_s=PATIENCE_S))
    assert client.kinds == ["session.created", "audio.start", "audio", "error", "audio.done"]
    error, done = client.came[-2:]
    assert isinstance(error, dict) and error["code"] == "client_too_slow"
    assert isinstance(done, dict) and done["status"] == "failed"
    assert "a request for speech is aborted: client does not read" in caplog.text


def test_a_client_that_never_reads_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_protocol, "DROP_S", 0.1)
    cascade = FakeCascade(speaker=FakeSpeaker(ms_per_word=LOUD_WORD_MS))

    async def act(client: SpeechClient) -> None:
        await client.append("word " * MANY_WORDS)
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(ConnectionClosed):
                while True:
                    await client.append("word")
                    await asyncio.sleep(0.005)

    visit(cascade, act, Patience(unread_s=0.1, late_s=0.1))


@pytest.mark.parametrize("is_far_ahead", [False, True])
def test_a_client_that_is_gone_ends_its_request(is_far_ahead: bool) -> None:
    """Also one that is not read any more because it has written more than can be spoken."""
    cascade = FakeCascade(speaker=FakeSpeaker(real_time_factor=0.01))

    async def act(client: SpeechClient) -> None:
        for _ in range(6 if is_far_ahead else 1):
            await client.append("word " * 20_000)
        await client.until("audio")
        client.connection.transport.abort()
        await until(lambda: cascade.active == 0)

    visit(cascade, act)


def test_thousands_of_appends_at_once_are_all_spoken() -> None:
    cascade = ScriptedCascade()
    text = "a b " * 2500

    async def act(client: SpeechClient) -> None:
        for letter in text:
            await client.append(letter)
        await client.say("input.done")
        assert (await client.until("audio.done"))["usage"]["input_tokens"] == len(text)

    visit(cascade, act)
    assert "".join(map(str, cascade.speeches[0].pushed)) == text


def test_who_says_nothing_is_told_so_and_closed() -> None:
    async def act(client: SpeechClient) -> None:
        assert await ending(client) == 1008
        assert isinstance(client.came[-1], dict)
        assert client.came[-1]["code"] == "config_timeout"

    visit(ScriptedCascade(), act, Patience(first_s=0.05))


def test_a_request_that_nobody_goes_on_with_is_closed_and_ends() -> None:
    cascade = FakeCascade()

    async def act(client: SpeechClient) -> None:
        await client.append("I would say")
        assert await ending(client) == 1008
        assert isinstance(client.came[-1], dict)
        assert client.came[-1]["code"] == "idle_timeout"
        assert cascade.active == 0

    visit(cascade, act, Patience(first_s=0.3, idle_s=0.3))


def test_a_fault_of_the_server_is_told_and_closes_the_socket(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(ScriptedCascade):
        def speak(self, request: SpeakRequest) -> ScriptedSpeech:
            raise ZeroDivisionError

    async def act(client: SpeechClient) -> None:
        await client.append("one")
        assert await ending(client) == 1011
        assert client.kinds[-1] == "error"

    visit(Broken(), act)
    assert "ZeroDivisionError" in caplog.text


# ---- the door ------------------------------------------------------------------------------------


def knock(house: House, **options: Any) -> list[str] | int:
    """What a client is told, up to its welcome or the code it is closed with; or its refusal."""

    async def run() -> list[str] | int:
        async with speech_server(ScriptedCascade(), house=house) as url:
            try:
                async with speech_client(url, **options) as client:
                    return [*client.kinds, str(client.connection.subprotocol)]
            except InvalidStatus as refused:
                return refused.response.status_code

    return asyncio.run(run())


def test_a_key_opens_the_door_in_a_header_or_as_a_subprotocol() -> None:
    house = House(keys=[KEY])
    bearer = {"Authorization": f"Bearer {KEY}"}
    shown = f"openai-insecure-api-key.{KEY}"
    assert knock(house) == 401
    assert knock(house, additional_headers=bearer) == ["session.created", "None"]
    for name in ("speech", "realtime"):
        assert knock(house, subprotocols=[name, shown]) == ["session.created", name]
    assert knock(house, subprotocols=["speech", f"{shown}x"]) == 401
    assert knock(House(), additional_headers={"Origin": "https://evil.example"}) == 403


def test_a_client_secret_opens_conversations_and_not_this_door() -> None:
    secret = KeyRing([KEY]).sign(ClientSecret(2**33, {"type": "realtime"}), Pass(0))
    headers = {"Authorization": f"Bearer {secret}"}
    assert knock(House(keys=[KEY]), additional_headers=headers) == 401


@pytest.mark.parametrize(
    "house",
    [
        House(readiness=Readiness(Phase.LOADING, "a voice")),
        House(failure=lambda: "The voice is out of service."),
    ],
)
def test_a_server_that_cannot_speak_says_why_and_closes(house: House) -> None:
    async def run() -> None:
        async with speech_server(ScriptedCascade(), house=house) as url:
            async with connect(url, proxy=None) as connection:
                client = SpeechClient(connection)
                assert await ending(client) == 1013
            assert isinstance(client.came[0], dict)
            assert client.came[0]["code"] == "server_not_ready"
            assert "voice" in client.came[0]["message"]

    asyncio.run(run())


def test_more_sockets_than_the_server_takes_are_told_to_come_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(speech_socket, "MOST_SOCKETS", 1)

    async def run() -> None:
        async with speech_server(ScriptedCascade()) as url:
            async with speech_client(url), connect(url, proxy=None) as connection:
                client = SpeechClient(connection)
                assert await ending(client) == 1013
                assert isinstance(client.came[0], dict)
                assert client.came[0]["code"] == "too_many_requests"
            async with asyncio.timeout(PATIENCE_S):
                while True:  # the first one's place is free a moment after it has gone
                    async with connect(url, proxy=None) as connection:
                        if json.loads(await connection.recv())["type"] == "session.created":
                            return

    asyncio.run(run())
