"""The speech routes, on a real socket or without, over a cascade that a test looks into."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx
import numpy as np
import soundfile
import uvicorn
from fastapi import FastAPI

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.ports import Cascade
from pipelines.types import VoiceSample
from realtime.access.gate import Gate
from realtime.access.keyring import KeyRing
from realtime.http.readiness import Phase, Readiness
from realtime.http.reception import Reception, refuse
from realtime.http.speech.routes import create_speech_routes

PATH = "/v1/audio/speech"
BATCH = "/v1/audio/speech/batch"
PATIENCE_S = 20.0
WORD_MS = 200.0
RATE_HZ = 24_000
RECORDING = b"the bytes of a sound file"
URL = "https://voices.example/joe.wav"
FILE = "/srv/voices/joe.wav"

Result = TypeVar("Result")


@dataclass
class Shelf:
    """Uploaded voices, and recordings elsewhere."""

    voices: dict[str, VoiceSample] = field(default_factory=dict[str, VoiceSample])
    fetched: list[str] = field(default_factory=list[str])

    def names(self) -> list[str]:
        return list(self.voices)

    async def fetch(self, url: str, field: str) -> bytes:
        self.fetched.append(url)
        if url != URL:
            raise refuse(400, "reference_unreachable", f"Invalid '{field}': not there.", field)
        return RECORDING

    async def read_path(self, path: str, field: str) -> bytes:
        if path != FILE:
            raise refuse(400, "path_not_allowed", f"Invalid '{field}': not allowed.", field)
        return RECORDING


@dataclass(frozen=True, slots=True)
class SpeechServer:
    """port: None without a socket."""

    client: httpx.AsyncClient
    port: int | None = None

    async def speak(self, **fields: Any) -> httpx.Response:
        return await self.client.post(PATH, json={"model": "tts-1", "voice": "alloy"} | fields)

    async def batch(self, **fields: Any) -> list[dict[str, Any]]:
        """The results in the order of their items."""
        answer = await self.client.post(BATCH, json=fields)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/x-ndjson"
        lines = [json.loads(line) for line in answer.text.splitlines()]
        return sorted(lines, key=lambda line: line["index"])


def make_cascade(**options: Any) -> FakeCascade:
    """Each word is a tone of WORD_MS; made at once, unless the options say otherwise."""
    voices = options.pop("voices", ("tone", "bell"))
    copies_voices = options.pop("copies_voices", True)
    speaker = FakeSpeaker(ms_per_word=WORD_MS, **options)
    return FakeCascade(speaker=speaker, voices=voices, copies_voices=copies_voices)


@dataclass(frozen=True, slots=True)
class House:
    """What stands behind the door."""

    cascade: Cascade
    shelf: Shelf = field(default_factory=Shelf)
    keys: tuple[str, ...] = ()
    readiness: Readiness = field(default_factory=lambda: Readiness(Phase.READY))
    failure: Callable[[], str | None] = lambda: None

    def app(self) -> FastAPI:
        gate = Gate(KeyRing(self.keys), (), loopback=True)
        reception = Reception(gate, self.readiness, self.cascade, self.failure)
        app = FastAPI(openapi_url=None)
        shelf = self.shelf
        app.include_router(
            create_speech_routes(
                reception, shelf.voices.get, shelf.names, shelf.fetch, shelf.read_path
            )
        )
        return app


class _Server(uvicorn.Server):
    """Ends when it is told to, and not up to a tenth of a second later."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.may_end = asyncio.Event()

    async def main_loop(self) -> None:
        await self.may_end.wait()


@asynccontextmanager
async def speech_server(house: House) -> AsyncIterator[SpeechServer]:
    """On a loopback port, for what only a connection shows."""
    cascade, app = house.cascade, house.app()
    await cascade.start(lambda _line: None)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = _Server(
        uvicorn.Config(app, lifespan="off", log_config=None, timeout_graceful_shutdown=2)
    )
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve([listener]), name="serving")
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not server.started:
                    await asyncio.sleep(0)
            base_url = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=base_url, timeout=PATIENCE_S) as client:
                yield SpeechServer(client, port)
        finally:
            server.may_end.set()
            await serving
            await cascade.close()
            listener.close()


@asynccontextmanager
async def speech_routes(house: House) -> AsyncIterator[SpeechServer]:
    """Without a socket: every answer comes as a whole."""
    await house.cascade.start(lambda _line: None)
    try:
        transport = httpx.ASGITransport(house.app())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            yield SpeechServer(client)
    finally:
        await house.cascade.close()


def on_routes(test: Callable[[SpeechServer], Coroutine[Any, Any, Result]], house: House) -> Result:
    """Runs a test, and sees that it leaves nothing behind."""
    return asyncio.run(_run(test, house, speech_routes(house)))


def on_server(test: Callable[[SpeechServer], Coroutine[Any, Any, Result]], house: House) -> Result:
    """The same over a socket."""
    return asyncio.run(_run(test, house, speech_server(house)))


async def _run(
    test: Callable[[SpeechServer], Coroutine[Any, Any, Result]],
    house: House,
    served: AbstractAsyncContextManager[SpeechServer],
) -> Result:
    async with asyncio.timeout(PATIENCE_S), served as server:
        result = await test(server)
        await until_idle(house.cascade)
        return result


def speak(
    cascade: Cascade | None = None, shelf: Shelf | None = None, **fields: Any
) -> httpx.Response:
    """One request's answer."""
    house = House(cascade or make_cascade(), shelf or Shelf())
    return on_routes(lambda server: server.speak(**fields), house)


async def until_idle(cascade: Cascade) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while cascade.active:
            await asyncio.sleep(0)


def fault(answer: httpx.Response) -> tuple[int, str, str | None]:
    """(status, code, field) of an answer in OpenAI's envelope."""
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "code", "param"}
    assert error["message"]
    assert answer.headers["x-request-id"].startswith("req_")
    return answer.status_code, error["code"], error["param"]


def events_of(text: str) -> list[dict[str, Any]]:
    """Server-sent events, each of one `data` line."""
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def audio_of(events: list[dict[str, Any]]) -> bytes:
    deltas = [event["audio"] for event in events if event["type"] == "speech.audio.delta"]
    return b"".join(map(base64.b64decode, deltas))


def duration_s(data: bytes) -> float:
    samples, rate_hz = soundfile.read(io.BytesIO(data))
    return len(np.atleast_1d(samples)) / rate_hz
