"""The socket of speech: what its address sets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.realtime.http.speech_socket_server import PATIENCE_S, speech_client, speech_server
from tests.realtime.runtime.stand_ins import ScriptedCascade


def test_an_address_sets_what_a_configuration_does_until_one_comes() -> None:
    async def run() -> None:
        cascade = ScriptedCascade()
        query = "?response_format=opus&speed=1.5&seed=7&word_timestamps=true&voice="
        async with speech_server(cascade) as url, speech_client(url + query) as client:
            config: dict[str, Any] = client.came[0]["config"]  # type: ignore[call-overload]
            assert (config["response_format"], config["voice"]) == ("opus", "default")
            assert (config["speed"], config["word_timestamps"]) == (1.5, True)
            await client.append("one")
            await client.say("input.done")
            await client.until("audio.done")
            await client.say("session.config", voice="alloy")
            later = (await client.until("session.updated"))["config"]
            assert (later["response_format"], later["speed"]) == ("pcm", 1.0)
        assert client.audio.startswith(b"OggS")
        assert cascade.speak_requests[0].drawing.seed == 7

    asyncio.run(run())


@pytest.mark.parametrize(
    ("query", "param", "told"),
    [
        ("speed=9", "speed", "a number from 0.25 to 4, but got '9'"),
        ("speed=fast", "speed", "a number from 0.25 to 4, but got 'fast'"),
        ("seed=1.5", "seed", "an integer from 0 to"),
        ("word_timestamps=perhaps", "word_timestamps", "true or false"),
        ("response_format=ogg", "response_format", "Ogg is sent as 'opus'"),
        ("format=opus", "format", "Unknown parameter: 'format'"),
        ("voice=nobody", "voice", "Unknown voice 'nobody'"),
    ],
)
def test_an_address_that_cannot_be_followed_is_told_why_and_closed(
    query: str, param: str, told: str
) -> None:
    async def run() -> None:
        cascade = ScriptedCascade()
        async with asyncio.timeout(PATIENCE_S), speech_server(cascade) as url:
            async with connect(f"{url}?{query}", proxy=None) as connection:
                error = json.loads(await connection.recv())
                with pytest.raises(ConnectionClosed) as closed:
                    await connection.recv()
        assert (error["type"], error["param"]) == ("error", param)
        assert told in error["message"]
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008

    asyncio.run(run())
