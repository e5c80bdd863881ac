"""Health, models and the web page."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from realtime.access.keyring import KeyRing
from realtime.http.pages import Pages
from realtime.http.readiness import Phase, Readiness
from realtime.http.routes import create_routes

KEY = "a-key-of-sixteen-characters"
WEB = Path(__file__).resolve().parents[3] / "web"


def get(path: str, readiness: Readiness, *, key: str | None = None, keys: tuple[str, ...] = ()):
    app = FastAPI()
    app.include_router(
        create_routes(
            readiness, model=lambda: "qwen", live=lambda: {"sessions": 3}, ring=KeyRing(keys)
        )
    )
    app.mount("/", Pages(WEB))
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(ask())


def test_health_follows_the_server() -> None:
    readiness = Readiness()
    readiness.move(Phase.LOADING, "whisper: loading")
    answer = get("/health", readiness)
    assert answer.status_code == 503
    assert answer.json() == {"status": "loading", "sessions": 3, "loading": "whisper: loading"}
    readiness.move(Phase.READY)
    answer = get("/health", readiness)
    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "sessions": 3}
    readiness.move(Phase.STOPPING)
    assert get("/health", readiness).status_code == 503


def test_models_names_the_one_there_is() -> None:
    answer = get("/v1/models", Readiness())
    assert answer.json()["data"] == [
        {"id": "qwen", "object": "model", "created": 0, "owned_by": "parley"}
    ]


@pytest.mark.parametrize(("key", "status"), [(None, 401), ("wrong", 401), (KEY, 200)])
def test_models_wants_a_key_where_there_are_keys(key: str | None, status: int) -> None:
    answer = get("/v1/models", Readiness(), key=key, keys=(KEY,))
    assert answer.status_code == status
    if status == 401:
        assert set(answer.json()["error"]) == {"message", "type", "code", "param"}
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html"),
        ("/main.js", "text/javascript"),
        ("/style.css", "text/css"),
        ("/playback-worklet.js", "text/javascript"),
    ],
)
def test_the_page_and_its_modules_are_served(path: str, kind: str) -> None:
    answer = get(path, Readiness())
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert "default-src 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/../pyproject.toml", "/%2e%2e/pyproject.toml", "/nothing.js"])
def test_nothing_outside_the_folder_is_served(path: str) -> None:
    assert get(path, Readiness()).status_code == 404
