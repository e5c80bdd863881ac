"""`POST /v1/realtime/client_secrets` and the addresses that only say what to use instead."""

from __future__ import annotations

import asyncio
import json
import random
import string
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from realtime.access.gate import Gate
from realtime.access.keyring import KeyRing
from realtime.http import bodies, lingering
from realtime.http.client_secrets import create_client_secret_route
from realtime.http.elsewhere import create_elsewhere_routes
from realtime.session.bounds import Bounds
from realtime.session.settings import SessionSettings, SessionType

PATH = "/v1/realtime/client_secrets"
KEY = "a-key-of-sixteen-characters"
KEYED = KeyRing([KEY])
NOW_S = 1_900_000_000
BEARER = {"Authorization": f"Bearer {KEY}"}


def defaults(kind: SessionType, model: str | None) -> SessionSettings:
    return SessionSettings(type=kind, model=model or "qwen", voice="joe")


def post(
    body: Any = None,
    *,
    ring: KeyRing = KEYED,
    headers: dict[str, str] | None = None,
    path: str = PATH,
) -> httpx.Response:
    """body: JSON unless it is bytes or a stream of them."""
    gate = Gate(ring, (), loopback=True, now_s=lambda: NOW_S + 0.9)
    app = FastAPI()
    app.include_router(
        create_client_secret_route(gate, Bounds(tools=2), defaults, lambda: "sess_1")
    )
    app.include_router(create_elsewhere_routes())
    is_raw = isinstance(body, bytes) or hasattr(body, "__aiter__")
    content = body if is_raw or body is None else json.dumps(body)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.post(
                path, content=content, headers=BEARER if headers is None else headers
            )

    return asyncio.run(ask())


def fault(answer: httpx.Response) -> tuple[int, str | None, str | None]:
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "code", "param"}
    assert error["type"] == "invalid_request_error"
    return answer.status_code, error["code"], error["param"]


@pytest.mark.parametrize("body", [None, b"", {}, {"session": None, "expires_after": None}])
def test_an_empty_request_gets_a_secret_for_the_default_session(body: Any) -> None:
    answer = post(body)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    made = answer.json()
    assert set(made) == {"value", "expires_at", "session"}
    assert made["expires_at"] == NOW_S + 600
    assert made["value"].startswith("ek_")
    session = made["session"]
    assert (session["id"], session["object"], session["type"], session["model"]) == (
        "sess_1",
        "realtime.session",
        "realtime",
        "qwen",
    )
    assert KEYED.admit(made["value"], NOW_S).session == {"type": "realtime"}


def test_the_session_is_echoed_whole_and_carried_as_it_was_sent() -> None:
    sent = {
        "type": "realtime",
        "model": "gpt-realtime",
        "instructions": "Be brief.",
        "audio": {"output": {"voice": "marin"}, "input": {"turn_detection": None}},
        "tracing": "auto",
    }
    made = post({"session": sent, "expires_after": {"seconds": 7200}}).json()
    assert made["expires_at"] == NOW_S + 7200
    session = made["session"]
    assert (session["model"], session["instructions"]) == ("gpt-realtime", "Be brief.")
    assert session["audio"]["output"]["voice"] == "marin"
    assert session["audio"]["input"]["turn_detection"] is None
    assert (session["tracing"], session["tool_choice"]) == ("auto", "auto")
    assert KEYED.admit(made["value"], NOW_S).session == sent


def test_a_transcription_session_has_its_own_object() -> None:
    transcription = {"model": "gpt-4o-transcribe", "language": "de"}
    sent = {"type": "transcription", "audio": {"input": {"transcription": transcription}}}
    session = post({"session": sent}).json()["session"]
    assert session["object"] == "realtime.transcription_session"
    assert session["audio"]["input"]["transcription"]["language"] == "de"
    assert "model" not in session


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"{", "invalid_json", None),
        (b"[]", "invalid_json", None),
        (b"\xff", "invalid_json", None),
        (b'{"session": {"type": "realtime", "type": "realtime"}}', "invalid_json", None),
        (b"[" * 40_000, "invalid_json", None),
        (b"[" * 60_000, "invalid_value", None),
        ({"sesion": {}}, "unknown_parameter", "sesion"),
        ({"expires_after": 5}, "invalid_type", "expires_after"),
        ({"expires_after": {"seconds": 9}}, "invalid_value", "expires_after.seconds"),
        ({"expires_after": {"seconds": 7201}}, "invalid_value", "expires_after.seconds"),
        ({"expires_after": {"seconds": "60"}}, "invalid_type", "expires_after.seconds"),
        ({"expires_after": {"seconds": True}}, "invalid_type", "expires_after.seconds"),
        ({"expires_after": {"anchor": "now"}}, "invalid_value", "expires_after.anchor"),
        ({"session": {}}, "missing_required_parameter", "session.type"),
        ({"session": []}, "invalid_type", "session"),
        ({"session": {"type": "chat"}}, "invalid_value", "session.type"),
        (
            {"session": {"type": "realtime", "modalities": ["text"]}},
            "unknown_parameter",
            "session.modalities",
        ),
        (
            {"session": {"type": "realtime", "audio": {"output": {"speed": 9}}}},
            "invalid_value",
            "session.audio.output.speed",
        ),
    ],
)
def test_what_is_wrong_is_named(body: Any, code: str, param: str | None) -> None:
    assert fault(post(body)) == (400, code, param)


def test_a_choice_among_tools_that_are_not_there_is_refused() -> None:
    """Every later update of such a session would fail."""
    sent: dict[str, Any] = {"type": "realtime"}
    sent["tool_choice"] = {"type": "function", "name": "look"}
    answer = post({"session": sent})
    assert fault(answer) == (400, "invalid_value", "session.tool_choice")
    assert "'look' not found" in answer.json()["error"]["message"]
    sent["tools"] = [{"type": "function", "name": "look"}]
    assert post({"session": sent}).status_code == 200


def test_what_is_only_sent_back_is_bounded() -> None:
    # A body of few bytes, which compresses well, and shows as many more.
    sent = {"type": "realtime", "tracing": {"group_id": "\u00e9" * 20_000}}
    answer = post(json.dumps({"session": sent}, ensure_ascii=False).encode())
    assert fault(answer) == (400, "invalid_value", "session.tracing")


def test_a_session_that_fits_no_header_is_refused_with_the_limit() -> None:
    noise = "".join(random.Random(1).choices(string.ascii_letters, k=12_000))
    answer = post({"session": {"type": "realtime", "instructions": noise}})
    assert fault(answer) == (400, "session_too_large", "session")
    assert "7680" in answer.json()["error"]["message"]


def test_a_session_beyond_the_servers_bounds_is_refused() -> None:
    tools = [{"type": "function", "name": f"f{n}", "parameters": {}} for n in range(3)]
    answer = post({"session": {"type": "realtime", "tools": tools}})
    assert fault(answer) == (400, "array_above_max_length", "session.tools")


async def endless() -> AsyncIterator[bytes]:
    for _ in range(10_000):
        yield b" " * 1024


def test_a_large_body_is_refused_before_it_is_whole() -> None:
    assert fault(post(endless())) == (413, "request_too_large", None)
    assert fault(post(b" " * (64 * 1024 + 1))) == (413, "request_too_large", None)
    assert post(b" " * (64 * 1024)).status_code == 200


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "GRACE_S", 0.0)
    monkeypatch.setattr(lingering, "LINGER_S", 0.01)

    async def silent() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    assert fault(post(silent())) == (408, "request_timeout", None)


@pytest.mark.parametrize("shown", [{}, {"Authorization": "Bearer no"}])
def test_it_wants_a_key_where_there_are_keys(shown: dict[str, str]) -> None:
    answer = post({}, headers=shown)
    assert fault(answer) == (401, "invalid_api_key", None)
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_secret_makes_no_secret() -> None:
    value = post({}).json()["value"]
    assert fault(post({}, headers={"Authorization": f"Bearer {value}"}))[0] == 401


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://127.0.0.1", 200),
        ("http://127.0.0.1:3000", 403),  # another program's page
        ("https://evil.example", 403),
        ("null", 403),
    ],
)
def test_without_keys_only_programs_and_the_servers_own_page_may_ask(
    origin: str | None, status: int
) -> None:
    # A page of another origin may post text without asking first.
    headers = {"Content-Type": "text/plain"} | ({"Origin": origin} if origin else {})
    answer = post({}, ring=KeyRing(), headers=headers)
    assert answer.status_code == status
    if status == 403:
        assert fault(answer) == (403, "origin_not_allowed", None)


@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("calls", "WebSocket at /v1/realtime"),
        ("calls/rtc_1/accept", "WebSocket at /v1/realtime"),
        ("calls/rtc_1/hangup", "WebSocket at /v1/realtime"),
        ("sessions", "POST /v1/realtime/client_secrets with session.type 'realtime'"),
        ("transcription_sessions", "client_secrets with session.type 'transcription'"),
        ("translations/client_secrets", "a realtime session"),
    ],
)
def test_what_is_not_here_says_what_is(path: str, instead: str) -> None:
    answer = post({}, path=f"/v1/realtime/{path}", headers={})
    assert fault(answer) == (404, "not_supported", None)
    assert instead in answer.json()["error"]["message"]
