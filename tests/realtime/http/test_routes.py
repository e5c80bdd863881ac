"""Health, models and the web page."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from realtime.access.gate import Gate
from realtime.access.keyring import KeyRing
from realtime.http.health import create_health_routes
from realtime.http.models import create_model_routes
from realtime.http.pages import Pages
from realtime.http.readiness import Phase, Readiness

KEY = "a-key-of-sixteen-characters"
WEB = Path(__file__).resolve().parents[3] / "web"


def get(
    path: str,
    readiness: Readiness,
    *,
    key: str | None = None,
    keys: tuple[str, ...] = (),
    host: str = "127.0.0.1:8000",
    loopback: bool = True,
    failure: str | None = None,
    method: str = "GET",
):
    app = FastAPI()
    gate = Gate(KeyRing(keys), ("https://voice.example",), loopback=loopback)
    app.include_router(
        create_health_routes(readiness, lambda: {"sessions": 3}, gate, lambda: failure)
    )
    app.include_router(create_model_routes(gate, lambda: "Qwen/qwen"))
    app.mount("/", Pages(WEB))
    headers = {"Host": host}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, headers=headers)

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


def test_health_says_why_a_server_can_serve_no_more() -> None:
    lost = "The process of the tts stage was ended by SIGKILL."
    answer = get("/health", Readiness(Phase.READY), failure=lost)
    assert answer.status_code == 503
    assert answer.json() == {"status": "failed", "sessions": 3, "failure": lost}
    answer = get("/health", Readiness(Phase.STOPPING), failure=lost)
    assert answer.json() == {"status": "stopping", "sessions": 3}


PHASES = [
    (Readiness(Phase.LOADING, "whisper: loading"), None, 503),
    (Readiness(Phase.READY), None, 200),
    (Readiness(Phase.READY), "The process of the tts stage is gone.", 503),
    (Readiness(Phase.STOPPING), None, 503),
    (Readiness(Phase.FAILED, "no model"), None, 503),
]


@pytest.mark.parametrize(("readiness", "failure", "status"), PHASES)
def test_a_server_lives_in_every_phase_and_is_ready_in_one(
    readiness: Readiness, failure: str | None, status: int
) -> None:
    alive = get("/health/live", readiness, failure=failure)
    assert (alive.status_code, alive.json()) == (200, {"status": "live"})
    ready = get("/health/ready", readiness, failure=failure)
    whole = get("/health", readiness, failure=failure)
    assert ready.status_code == whole.status_code == status
    body = whole.json()
    assert body.pop("sessions") == 3
    assert ready.json() == body, "the same words, without the figures"
    assert (body["status"] == "ready") is (status == 200)
    assert {answer.headers["cache-control"] for answer in (alive, ready, whole)} == {"no-store"}
    for path, expected in (("/health/live", 200), ("/health/ready", status), ("/health", status)):
        head = get(path, readiness, failure=failure, method="HEAD")
        assert (head.status_code, head.content) == (expected, b"")


def test_models_names_what_requests_may_name() -> None:
    answer = get("/v1/models", Readiness())
    entries = answer.json()["data"]
    assert [entry["id"] for entry in entries] == ["Qwen/qwen", "parley-tts", "parley-asr"]
    assert entries[0] == {
        "id": "Qwen/qwen",
        "object": "model",
        "created": 0,
        "owned_by": "parley",
    }
    for entry in entries:
        path = f"/v1/models/{entry['id']}"
        assert get(path, Readiness()).json() == entry
        assert get(path.replace("n/q", "n%2Fq"), Readiness()).json() == entry


@pytest.mark.parametrize("name", ["whisper-1", "Qwen", "parley-tts/", "%00", "x" * 5000])
def test_a_model_that_does_not_exist_is_told_in_the_envelope(name: str) -> None:
    answer = get(f"/v1/models/{name}", Readiness())
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert error["type"] == "invalid_request_error"
    assert "parley-tts" in error["message"] and len(error["message"]) < 300
    assert get(f"/v1/models/{name}", Readiness(), keys=(KEY,)).status_code == 401


@pytest.mark.parametrize(("key", "status"), [(None, 401), ("wrong", 401), (KEY, 200)])
def test_models_wants_a_key_where_there_are_keys(key: str | None, status: int) -> None:
    answer = get("/v1/models", Readiness(), key=key, keys=(KEY,))
    assert answer.status_code == status
    if status == 401:
        assert set(answer.json()["error"]) == {"message", "type", "code", "param"}
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "path", ["/health", "/health/live", "/health/ready", "/v1/models", "/v1/models/parley-asr"]
)
@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1:8000", True),
        ("LocalHost", True),
        ("[::1]:8000", True),
        ("voice.example", True),  # configured
        ("evil.com", False),
        ("127.0.0.1.evil.com:8000", False),
        ("[", False),
        ("", False),
    ],
)
def test_a_page_whose_name_points_to_loopback_reads_nothing(
    path: str, host: str, is_local: bool
) -> None:
    readiness = Readiness(Phase.READY)
    answer = get(path, readiness, host=host)
    assert (answer.status_code == 200) is is_local
    if not is_local:
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "host_not_allowed")
        assert get(path, readiness, host=host, keys=(KEY,), key=KEY).status_code == 200
        assert get(path, readiness, host=host, loopback=False).status_code == 200


def test_the_page_is_served_behind_the_routes() -> None:
    answer = get("/", Readiness())
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"].split("; ")
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("path", ["/../pyproject.toml", "/%2e%2e/pyproject.toml", "/nothing.js"])
def test_nothing_outside_the_folder_is_served(path: str) -> None:
    assert get(path, Readiness()).status_code == 404
