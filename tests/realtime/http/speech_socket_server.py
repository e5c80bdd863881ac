"""The socket of speech alone, on a real port, and a client of it, for tests."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI
from websockets.asyncio.client import ClientConnection, connect

from pipelines.ports import Cascade
from pipelines.types import Samples, VoiceSample
from realtime.access.gate import Gate
from realtime.access.keyring import KeyRing
from realtime.http.readiness import Phase, Readiness
from realtime.http.reception import Reception
from realtime.http.speech_socket.routes import PATH, create_speech_socket
from realtime.http.speech_socket.session import Patience
from realtime.transports.socket_protocol import SocketProtocol

PATIENCE_S = 20.0
SAMPLE = VoiceSample(b"RIFF", "what is said in it")


@dataclass(slots=True)
class House:
    """What stands behind the door; a test may change it while it is open."""

    readiness: Readiness = field(default_factory=lambda: Readiness(Phase.READY))
    failure: Callable[[], str | None] = lambda: None
    uploaded: dict[str, VoiceSample] = field(default_factory=lambda: {"mine": SAMPLE})
    keys: Sequence[str] = ()


@asynccontextmanager
async def speech_server(
    cascade: Cascade, patience: Patience | None = None, house: House | None = None
) -> AsyncIterator[str]:
    """The socket's URL, until the block ends. The cascade is started and closed."""
    house = house or House()
    gate = Gate(KeyRing(house.keys), (), loopback=True)
    reception = Reception(gate, house.readiness, cascade, lambda: house.failure())
    app = FastAPI(openapi_url=None)
    app.include_router(
        create_speech_socket(
            reception, house.uploaded.get, lambda: list(house.uploaded), patience or Patience()
        )
    )
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, ws=SocketProtocol, ws_per_message_deflate=False, lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    await cascade.start(lambda _line: None)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve([listener]), name="serving")
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not server.started:
                    await asyncio.sleep(0)
            yield f"ws://127.0.0.1:{listener.getsockname()[1]}{PATH}"
        finally:
            server.should_exit = True
            await serving
            listener.close()
    await cascade.close()


class SpeechClient:
    """Remembers all that came, in order: events as objects, audio as bytes."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.came: list[dict[str, Any] | bytes] = []

    async def say(self, kind: str, **fields: Any) -> None:
        await self.connection.send(json.dumps({"type": kind, **fields}))

    async def append(self, *texts: str) -> None:
        for text in texts:
            await self.say("input.append", text=text)

    async def next(self) -> dict[str, Any] | bytes:
        async with asyncio.timeout(PATIENCE_S):
            message = await self.connection.recv()
        self.came.append(message if isinstance(message, bytes) else json.loads(message))
        return self.came[-1]

    async def until(self, kind: str) -> dict[str, Any]:
        """The next event of this type; "audio" for the next frame of sound."""
        while True:
            message = await self.next()
            if isinstance(message, bytes):
                if kind == "audio":
                    return {"type": "audio", "data": message}
            elif message["type"] == kind:
                return message

    @property
    def kinds(self) -> list[str]:
        """What came, with audio in a row told once."""
        kinds: list[str] = []
        for message in self.came:
            kind = "audio" if isinstance(message, bytes) else message["type"]
            if kind != "audio" or kinds[-1:] != ["audio"]:
                kinds.append(kind)
        return kinds

    @property
    def audio(self) -> bytes:
        return b"".join(message for message in self.came if isinstance(message, bytes))

    @property
    def samples(self) -> Samples:
        return np.frombuffer(self.audio, "<i2").astype(np.float32) / np.float32(32768)

    @property
    def words(self) -> list[dict[str, int]]:
        events = [message for message in self.came if isinstance(message, dict)]
        return [
            word for event in events if event["type"] == "audio.words" for word in event["words"]
        ]


@asynccontextmanager
async def speech_client(url: str, **options: Any) -> AsyncIterator[SpeechClient]:
    """Connected, with `session.created` read."""
    async with connect(url, proxy=None, compression=None, **options) as connection:
        client = SpeechClient(connection)
        await client.until("session.created")
        yield client
