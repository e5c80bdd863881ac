"""The WebSocket endpoint on a real socket: refusals, farewells, and the transport itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from realtime.access.gate import Gate
from realtime.access.keyring import KeyRing
from realtime.runtime.parking import Parking
from realtime.runtime.refusals import ServerFull, StageUnavailable
from realtime.runtime.transport import Transport, TransportClosed
from realtime.session.settings import SessionType
from realtime.transports.endpoint import create_realtime_route
from realtime.transports.handshake import Admission, Door

KEY = "a-key-of-sixteen-characters"
PATIENCE_S = 10.0

Conversation = Callable[[Transport], Awaitable[None]]


class Host:
    """A reception whose conversations are the test's."""

    parking = Parking()

    def __init__(self, conversation: Conversation, *, refusal: str | None = None) -> None:
        self.opened: list[tuple[SessionType, str | None]] = []
        self._conversation = conversation
        self._refusal = refusal

    def refusal(self) -> str | None:
        return self._refusal

    async def converse(self, transport: Transport, admission: Admission) -> None:
        self.opened.append((admission.session_type, admission.model))
        await self._conversation(transport)


async def echo(transport: Transport) -> None:
    while (message := await transport.receive()) is not None:
        await transport.send(f"{type(message).__name__} of {len(message)}")


async def full(_transport: Transport) -> None:
    raise ServerFull("All 2 sessions of this server are in use.")


async def voiceless(_transport: Transport) -> None:
    raise StageUnavailable("The tts stage of this server is being restarted.")


@contextlib.asynccontextmanager
async def serving(host: Host, *, keys: tuple[str, ...] = ()) -> AsyncIterator[str]:
    app = FastAPI()
    door = Door(Gate(KeyRing(keys), origins=(), loopback=True))
    app.include_router(create_realtime_route(door, host))
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, ws="websockets-sansio", ws_max_size=32 * 2**20, lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    with listener:
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            group.create_task(server.serve([listener]))
            try:
                yield f"ws://127.0.0.1:{listener.getsockname()[1]}/v1/realtime"
            finally:
                server.should_exit = True


def dial(url: str, **options: Any) -> connect:
    return connect(url, proxy=None, compression=None, **options)


async def closing_of(client: ClientConnection) -> tuple[int, str]:
    with contextlib.suppress(ConnectionClosed):
        async for _ in client:
            pass
    await client.wait_closed()
    assert client.close_code is not None
    return client.close_code, client.close_reason or ""


def refused(
    host: Host, *, keys: tuple[str, ...] = (), query: str = "", **options: Any
) -> tuple[int, Any]:
    async def run() -> tuple[int, Any]:
        async with serving(host, keys=keys) as url:
            with pytest.raises(InvalidStatus) as caught:
                await dial(url + query, **options)
            response = caught.value.response
            return response.status_code, json.loads(response.body or b"")["error"]

    return asyncio.run(run())


def test_a_bad_key_is_refused_before_the_upgrade() -> None:
    host = Host(echo)
    status, error = refused(host, keys=(KEY,), additional_headers={"Authorization": "Bearer no"})
    assert (status, error["code"], host.opened) == (401, "invalid_api_key", [])


def test_a_foreign_page_is_refused_before_the_upgrade() -> None:
    host = Host(echo)
    status, error = refused(host, origin="https://evil.example")
    assert (status, error["code"], host.opened) == (403, "origin_not_allowed", [])


def test_a_loading_server_says_so_before_the_upgrade() -> None:
    host = Host(echo, refusal="The server is loading its models (whisper).")
    status, error = refused(host)
    assert (status, error["type"], error["code"]) == (503, "server_error", "not_ready")
    assert "whisper" in error["message"]


def sent_away(host: Host, query: str = "", **options: Any) -> tuple[dict[str, Any], int]:
    async def run() -> tuple[dict[str, Any], int]:
        async with serving(host) as url, dial(url + query, **options) as client:
            event = json.loads(await client.recv())
            code, _reason = await closing_of(client)
            return event, code

    return asyncio.run(run())


def test_a_server_that_lacks_a_stage_says_so_and_closes() -> None:
    event, code = sent_away(Host(voiceless))
    assert code == 1013
    assert (event["type"], event["error"]["type"]) == ("error", "server_error")
    assert event["error"]["code"] == "stage_unavailable"
    assert "tts stage" in event["error"]["message"]


def test_a_full_server_says_so_and_closes() -> None:
    event, code = sent_away(Host(full))
    assert code == 1013
    assert event["type"] == "error"
    assert event["error"] == {
        "type": "server_error",
        "code": "too_many_sessions",
        "message": "All 2 sessions of this server are in use.",
        "param": None,
        "event_id": None,
    }


def test_the_beta_dialect_is_refused_as_openai_does() -> None:
    host = Host(echo)
    event, code = sent_away(host, additional_headers={"OpenAI-Beta": "realtime=v1"})
    assert (code, event["error"]["code"]) == (4000, "beta_api_shape_disabled")
    assert host.opened == []


def test_a_transcription_session_with_a_model_is_refused_as_openai_does() -> None:
    event, code = sent_away(Host(echo), query="?intent=transcription&model=whisper-1")
    assert (code, event["error"]["code"], event["error"]["param"]) == (
        4000,
        "invalid_parameter",
        "model",
    )
    assert event["error"]["message"] == (
        "You must not provide a model parameter for transcription sessions."
    )


@pytest.mark.parametrize(
    ("query", "status", "param"),
    [("?intent=chat", 400, "intent"), ("?call_id=rtc_1", 404, "call_id")],
)
def test_a_wrong_address_is_refused_before_the_upgrade(query: str, status: int, param: str) -> None:
    host = Host(echo)
    answer, error = refused(host, query=query)
    assert (answer, error["param"], host.opened) == (status, param, [])


def test_a_larger_message_than_allowed_ends_the_connection() -> None:
    async def run() -> tuple[int, str]:
        async with serving(Host(echo)) as url, dial(url) as client:
            with contextlib.suppress(ConnectionClosed):
                await client.send("x" * (33 * 2**20))
            return await closing_of(client)

    assert asyncio.run(run())[0] == 1009


def test_a_browsers_key_comes_as_a_subprotocol_and_realtime_is_chosen() -> None:
    host = Host(echo)
    offered = [Subprotocol("realtime"), Subprotocol(f"openai-insecure-api-key.{KEY}")]

    async def run() -> None:
        async with (
            serving(host, keys=(KEY,)) as url,
            dial(f"{url}?intent=transcription", subprotocols=offered) as client,
        ):
            assert client.subprotocol == "realtime"
            await client.send("hello")
            assert await client.recv() == "str of 5"

    asyncio.run(run())
    assert host.opened == [(SessionType.TRANSCRIPTION, None)]


def test_a_message_of_twenty_mebibytes_arrives_whole() -> None:
    async def run() -> None:
        async with serving(Host(echo)) as url, dial(url) as client:
            await client.send("x" * (21 * 2**20))
            assert await client.recv() == f"str of {21 * 2**20}"
            await client.send(b"\x00\x01")
            assert await client.recv() == "bytes of 2"

    asyncio.run(run())


def test_the_server_closes_with_a_code_and_a_reason_that_fits() -> None:
    async def close(transport: Transport) -> None:
        await transport.close(1008, "\u00e9" * 200)
        await transport.close(1011, "again")
        assert await transport.receive() is None
        with pytest.raises(TransportClosed):
            await transport.send("late")

    async def run() -> tuple[int, str]:
        async with serving(Host(close)) as url, dial(url) as client:
            return await closing_of(client)

    assert asyncio.run(run()) == (1008, "\u00e9" * 61)


def test_a_client_that_vanishes_ends_receive_and_send() -> None:
    seen: list[str] = []
    over = asyncio.Event()

    async def converse(transport: Transport) -> None:
        assert await transport.receive() is None
        assert await transport.receive() is None
        try:
            await transport.send("anybody there?")
        except TransportClosed:
            seen.append("closed")
        await transport.close(1000, "")
        over.set()

    async def run() -> None:
        async with serving(Host(converse)) as url:
            client = await dial(url)
            client.transport.abort()  # as a killed process: no closing handshake
            await over.wait()

    asyncio.run(run())
    assert seen == ["closed"]


def test_who_is_turned_away_stands_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """In one line of each kind, however many knock."""

    async def run() -> None:
        key = {"Authorization": f"Bearer {KEY}"}
        strange = {**key, "Origin": "https://evil.example"}
        async with serving(Host(echo), keys=(KEY,)) as url:
            for where, headers in ((url, {}), (url, strange), (url, strange), (f"{url}x", key)):
                with pytest.raises(InvalidStatus):
                    await connect(where, proxy=None, additional_headers=headers)

    asyncio.run(run())
    told = [line for line in caplog.messages if "is refused" in line]
    codes = [line.split(": ")[1] for line in told]
    assert codes == ["invalid_api_key", "origin_not_allowed", "not_found"]
    assert "https://evil.example" in told[1]
