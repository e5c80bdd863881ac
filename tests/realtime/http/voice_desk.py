"""The routes of voices over a shelf in a folder, for tests."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from realtime.access.gate import Gate
from realtime.access.keyring import KeyRing
from realtime.http.readiness import Phase, Readiness
from realtime.http.reception import Reception
from realtime.http.request_protocol import RequestProtocol
from realtime.http.voices.routes import create_voice_routes
from realtime.voices.shelf import VoiceShelf
from tests.realtime.runtime.stand_ins import ScriptedCascade
from tests.realtime.voices.recordings import recording

PATH = "/v1/audio/voices"
CONSENT = "I am Anna and agree that my voice is copied."
DATA = recording(1.2)
GOOD = {"name": "anna", "consent": CONSENT}
PATIENCE_S = 20.0


class Desk:
    """The routes over a shelf in a folder."""

    def __init__(self, folder: Path, keys: tuple[str, ...] = ()) -> None:
        self.cascade = ScriptedCascade()
        self.readiness = Readiness(Phase.READY)
        self.shelf = VoiceShelf(folder)
        gate = Gate(KeyRing(keys), (), loopback=True)
        reception = Reception(gate, self.readiness, self.cascade, lambda: None)
        self.app = FastAPI()
        self.app.include_router(create_voice_routes(reception, self.shelf))

    def ask(self, method: str, path: str = PATH, **options: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as web:
                return await web.request(method, path, **options)

        return asyncio.run(ask())

    def upload(self, fields: dict[str, str], data: bytes = DATA, **files: Any) -> httpx.Response:
        return self.ask("POST", data=fields, files=files or {"audio_sample": ("a.wav", data)})

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """On a real socket, until the block ends; yields its URL."""
        config = uvicorn.Config(
            self.app, http=RequestProtocol, ws="none", lifespan="off", log_config=None
        )
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
                group.create_task(server._serve([listener]), name="serving")
                try:
                    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
                finally:
                    server.should_exit = True
