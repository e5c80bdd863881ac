"""A server that transcribes by script, and a client of it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import numpy as np
import uvicorn
from fastapi import FastAPI

from pipelines.types import (
    ANY_LANGUAGE,
    HEARING_RATE_HZ,
    HeardWord,
    RecogniseRequest,
    Samples,
    StageError,
    Transcript,
)
from realtime.access.gate import Gate
from realtime.access.keyring import KeyRing
from realtime.http.readiness import Phase, Readiness
from realtime.http.reception import Reception
from realtime.http.transcription.routes import create_transcription_routes
from tests.realtime.audio.sound_files import encoded, hum
from tests.realtime.runtime.stand_ins import ScriptedCascade, ScriptedStream

PATH = "/v1/audio/transcriptions"
TRANSLATIONS = "/v1/audio/translations"
WORD_S = 0.5
STARTED_S = 20.0


class Listener(ScriptedCascade):
    """Hears the texts one by one, each word half a second after the last; remembers requests.

    language: that is heard, and is all that it knows if it is not `taught` others.
    """

    def __init__(self, *texts: str | StageError, language: str | None = "en") -> None:
        super().__init__()
        self.script = texts or ("Good day.",)
        self.language = language
        self.knows_words = True
        self.taught = True
        self.recognise_requests: list[RecogniseRequest] = []
        self.most_open = 0

    def recognise(self, request: RecogniseRequest) -> ScriptedStream:
        text = self.script[min(len(self.recognise_requests), len(self.script) - 1)]
        self.recognise_requests.append(request)

        async def script() -> AsyncIterator[Transcript]:
            await stream.has_finished.wait()
            self.has_heard.set()
            if self.recognise_gate is not None:
                await self.recognise_gate.wait()
            self.heard.append(np.concatenate(stream.pushed))
            if isinstance(text, StageError):
                raise text
            tells = request.wants_words and self.knows_words
            words = tuple(words_of(text)) if tells else ()
            is_told = self.taught and request.language not in (None, ANY_LANGUAGE)
            yield Transcript(text, True, request.language if is_told else self.language, words)

        stream = ScriptedStream(self, script)
        self.streams.append(stream)
        self.most_open = max(self.most_open, self.active)
        return stream


def words_of(text: str) -> list[HeardWord]:
    return [
        HeardWord(word, number * WORD_S, number * WORD_S + 0.4)
        for number, word in enumerate(text.split())
    ]


def talk(pieces: int) -> Samples:
    """Sounds of 20 s with gaps: each is recognised by itself."""
    gap = np.zeros(HEARING_RATE_HZ // 2, np.float32)
    return np.tile(np.concatenate([hum(20.0), gap]), pieces)


def create_app(
    cascade: ScriptedCascade, keys: tuple[str, ...] = (), failure: str | None = None
) -> FastAPI:
    readiness = Readiness()
    readiness.move(Phase.READY)
    gate = Gate(KeyRing(keys), (), loopback=True)
    app = FastAPI()
    app.include_router(
        create_transcription_routes(Reception(gate, readiness, cascade, lambda: failure))
    )
    return app


def post(
    cascade: ScriptedCascade | None = None,
    fields: dict[str, Any] | None = None,
    *,
    file: bytes | None = None,
    files: Any = None,
    path: str = PATH,
    app: FastAPI | None = None,
    **request: Any,
) -> httpx.Response:
    """file: two seconds of sound unless told otherwise. files: as of httpx, instead."""
    if files is None and "content" not in request:
        files = {"file": ("talk.wav", encoded(hum(2.0)) if file is None else file)}
    served = app or create_app(cascade or Listener())

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(served)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.post(path, data=fields, files=files, **request)

    return asyncio.run(ask())


def fault(answer: httpx.Response) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "code", "param"}
    assert error["message"]
    return answer.status_code, error["code"], error["param"]


class Line:
    """One ASGI exchange by hand: the client may go."""

    def __init__(self, body: bytes, content_type: str, path: str = PATH) -> None:
        self.sent: list[Any] = []
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._inbox.put_nowait({"type": "http.request", "body": body, "more_body": False})
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1"), (b"content-type", content_type.encode())],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }

    def arrive(self, part: bytes) -> None:
        """More of the body, which is not the last."""
        self._inbox.put_nowait({"type": "http.request", "body": part, "more_body": True})

    def leave(self) -> None:
        self._inbox.put_nowait({"type": "http.disconnect"})

    async def receive(self) -> Any:
        return await self._inbox.get()

    async def send(self, message: Any) -> None:
        self.sent.append(message)


def form_of(fields: dict[str, str], file: bytes) -> tuple[bytes, str]:
    """The body and its content type."""
    request = httpx.Request("POST", "http://x", data=fields, files={"file": ("a.wav", file)})
    return request.read(), request.headers["content-type"]


@asynccontextmanager
async def serving(cascade: ScriptedCascade) -> AsyncIterator[str]:
    """On a loopback socket; yields its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        create_app(cascade), lifespan="off", log_config=None, timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    async with asyncio.TaskGroup() as tasks:
        served = tasks.create_task(server.serve([listener]))
        try:
            async with asyncio.timeout(STARTED_S):
                while not server.started:
                    await asyncio.sleep(0)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await served
            listener.close()
