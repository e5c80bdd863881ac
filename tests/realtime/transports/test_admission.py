"""Keys, secrets and limits on a whole server with a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from pipelines.fakes.cascade import FakeCascade
from realtime.settings import Limits, Server, Settings
from tests.live_server import PATIENCE_S, LiveServer, live_server

KEY, OTHER_KEY = "a-key-of-sixteen-characters", "another-long-enough-key"
KEYED = Settings(server=Server(keys=(KEY, OTHER_KEY)), limits=Limits(sessions_per_key=2))
SESSION = {
    "type": "realtime",
    "instructions": "Be brief.",
    "output_modalities": ["text"],
    "audio": {"output": {"voice": "marin"}},
}

Body = Callable[[LiveServer], Awaitable[None]]


def serve(body: Body, settings: Settings = KEYED) -> None:
    async def run() -> None:
        async with live_server(FakeCascade(), settings) as server:
            async with asyncio.timeout(PATIENCE_S):
                await body(server)
                while server.app.registry.count:
                    await asyncio.sleep(0.01)

    asyncio.run(run())


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def dial(server: LiveServer, query: str = "", **options: Any) -> connect:
    return connect(server.socket_url + query, proxy=None, compression=None, **options)


async def make_secret(server: LiveServer, body: dict[str, Any], key: str = KEY) -> str:
    async with httpx.AsyncClient(base_url=server.http_url, headers=bearer(key)) as client:
        answer = await client.post("/v1/realtime/client_secrets", json=body)
    return answer.raise_for_status().json()["value"]


async def next_event(socket: ClientConnection) -> dict[str, Any]:
    return json.loads(await socket.recv())


async def refusal(server: LiveServer, **options: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as caught:
        await dial(server, **options)
    response = caught.value.response
    return response.status_code, json.loads(response.body or b"")["error"]["code"]


def test_a_browser_opens_the_session_that_its_secret_carries() -> None:
    async def body(server: LiveServer) -> None:
        value = await make_secret(server, {"session": SESSION})
        offered = [Subprotocol("realtime"), Subprotocol(f"openai-insecure-api-key.{value}")]
        async with dial(server, subprotocols=offered, origin=server.http_url) as socket:
            assert socket.subprotocol == "realtime"
            session = (await next_event(socket))["session"]
            assert session["instructions"] == "Be brief."
            assert session["output_modalities"] == ["text"]
            assert session["audio"]["output"]["voice"] == "marin"
            update = {"type": "realtime", "instructions": "Be verbose."}
            await socket.send(json.dumps({"type": "session.update", "session": update}))
            session = (await next_event(socket))["session"]
            assert session["instructions"] == "Be verbose."
            assert session["output_modalities"] == ["text"]

    serve(body)


def test_a_secret_decides_that_a_session_only_listens() -> None:
    async def body(server: LiveServer) -> None:
        value = await make_secret(server, {"session": {"type": "transcription"}})
        async with dial(server, additional_headers=bearer(value)) as socket:
            session = (await next_event(socket))["session"]
            assert session["object"] == "realtime.transcription_session"

    serve(body)


def test_the_longest_secret_passes_as_a_subprotocol_and_as_a_header() -> None:
    async def body(server: LiveServer) -> None:
        words = (f"{number * 7919:x}" for number in range(1, 100_000))
        text, value = "", ""
        while len(value) < 7500:  # of 7680
            text += " ".join(next(words) for _ in range(20)) + " "
            value = await make_secret(
                server, {"session": {"type": "realtime", "instructions": text}}
            )
        offered = [
            Subprotocol(name)
            for name in (
                "realtime",
                f"openai-insecure-api-key.{value}",
                "openai-agents-sdk.0.20.0",
            )
        ]
        shown: tuple[dict[str, Any], ...] = (
            {"subprotocols": offered},
            {"additional_headers": bearer(value)},
        )
        for options in shown:
            async with dial(server, "?model=gpt-realtime", **options) as socket:
                session = (await next_event(socket))["session"]
                assert session["instructions"] == text

    serve(body)


def test_the_python_sdk_makes_a_secret_and_uses_it() -> None:
    async def body(server: LiveServer) -> None:
        base_url = f"{server.http_url}/v1"
        async with AsyncOpenAI(api_key=KEY, base_url=base_url, max_retries=0) as owner:
            made = await owner.realtime.client_secrets.create(
                expires_after={"anchor": "created_at", "seconds": 30},
                session={"type": "realtime", "instructions": "Be brief."},
            )
        assert made.value.startswith("ek_")
        assert made.session.type == "realtime"
        async with (
            AsyncOpenAI(api_key=made.value, base_url=base_url, max_retries=0) as guest,
            guest.realtime.connect(model="gpt-realtime") as connection,
        ):
            event = await connection.recv()
            assert event.type == "session.created"
            assert event.session.type == "realtime"
            assert event.session.instructions == "Be brief."

    serve(body)


def test_a_session_outlives_its_secret_and_no_other_begins() -> None:
    async def body(server: LiveServer) -> None:
        value = await make_secret(server, {"expires_after": {"seconds": 10}})
        shown: dict[str, Any] = {"additional_headers": bearer(value)}
        async with dial(server, **shown) as socket:
            await next_event(socket)
            server.app.now_s = lambda: 4_000_000_000.0
            assert await refusal(server, **shown) == (401, "client_secret_expired")
            await socket.send('{"type":"input_audio_buffer.clear"}')
            assert (await next_event(socket))["type"] == "input_audio_buffer.cleared"

    serve(body)


def test_a_forged_secret_is_refused_with_and_without_keys() -> None:
    async def body(server: LiveServer) -> None:
        value = await make_secret(server, {})
        forged = value[:-4] + ("AAAA" if value[-4:] != "AAAA" else "BBBB")
        assert await refusal(server, additional_headers=bearer(forged)) == (401, "invalid_api_key")

    serve(body)
    serve(body, Settings())


def test_each_key_has_its_sessions_and_its_secrets_count() -> None:
    async def body(server: LiveServer) -> None:
        value = await make_secret(server, {})
        async with (
            dial(server, additional_headers=bearer(KEY)) as first,
            dial(server, additional_headers=bearer(value)) as second,
            dial(server, additional_headers=bearer(OTHER_KEY)) as other,
        ):
            for socket in (first, second, other):
                assert (await next_event(socket))["type"] == "session.created"
            async with dial(server, additional_headers=bearer(KEY)) as third:
                error = (await next_event(third))["error"]
                assert error["code"] == "too_many_sessions"
                assert "All 2 sessions of this key" in error["message"]
                with pytest.raises(ConnectionClosed):
                    await third.recv()
                assert third.close_code == 1013
            await first.close()
            while server.app.registry.count == 3:
                await asyncio.sleep(0.01)
            async with dial(server, additional_headers=bearer(KEY)) as fourth:
                assert (await next_event(fourth))["type"] == "session.created"

    serve(body)
