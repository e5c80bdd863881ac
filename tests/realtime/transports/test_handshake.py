"""Who may open a conversation."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.access.client_secret import ClientSecret
from realtime.access.gate import Gate
from realtime.access.keyring import KeyRing, Pass
from realtime.session.settings import SessionType
from realtime.transports.handshake import CONFIGURED, Admission, Door, Refusal

KEY = "a-key-of-sixteen-characters"
NOW_S = 1_900_000_000.0
OPEN = Door(Gate(KeyRing(), (), loopback=True, now_s=lambda: NOW_S))
RING = KeyRing(("another-long-enough-key", KEY))
KEYED = Door(Gate(RING, (), loopback=False, now_s=lambda: NOW_S))


def judge(
    door: Door,
    *,
    headers: dict[str, str] | None = None,
    subprotocols: tuple[str, ...] = (),
    query: dict[str, str] | None = None,
) -> Admission | Refusal:
    return door.judge({"host": "127.0.0.1:8000", **(headers or {})}, subprotocols, query or {})


def admitted(door: Door, **request: Any) -> Admission:
    verdict = judge(door, **request)
    assert isinstance(verdict, Admission), verdict
    return verdict


def refused(door: Door, **request: Any) -> Refusal:
    verdict = judge(door, **request)
    assert isinstance(verdict, Refusal), verdict
    return verdict


def bearer(value: str) -> dict[str, str]:
    return {"authorization": f"Bearer {value}"}


def secret_of(session: dict[str, Any], *, lasts_s: int = 60) -> str:
    return RING.sign(ClientSecret(int(NOW_S) + lasts_s, session), Pass(1))


def test_a_program_may_come_in_without_anything() -> None:
    assert judge(OPEN) == Admission(None, SessionType.REALTIME, None, wants_beta=False)


def test_only_the_realtime_subprotocol_is_chosen() -> None:
    offered = ("openai-insecure-api-key.x", "realtime", "openai-agents-sdk.1")
    assert admitted(OPEN, subprotocols=offered).subprotocol == "realtime"
    assert admitted(OPEN, subprotocols=("chat",)).subprotocol is None


def test_the_query_names_model_and_kind() -> None:
    verdict = admitted(OPEN, query={"model": "gpt-realtime", "unknown": "1"})
    assert (verdict.model, verdict.session_type) == ("gpt-realtime", SessionType.REALTIME)
    hearing = admitted(OPEN, query={"intent": "transcription"})
    assert (hearing.session_type, hearing.has_stray_model) == (SessionType.TRANSCRIPTION, False)
    assert len(admitted(OPEN, query={"model": "m" * 5000}).model or "") == 256


def test_a_transcription_session_with_a_model_is_noticed() -> None:
    query = {"intent": "transcription", "model": "gpt-4o-transcribe"}
    assert admitted(OPEN, query=query).has_stray_model


def test_an_unknown_intent_is_refused() -> None:
    refusal = refused(OPEN, query={"intent": "chat"})
    assert (refusal.status, refusal.code, refusal.param) == (400, "invalid_value", "intent")
    assert refusal.message == "Invalid value: 'chat'. Supported values are: 'transcription'."


def test_a_call_cannot_be_controlled() -> None:
    refusal = refused(OPEN, query={"call_id": "rtc_1", "model": "m"})
    assert (refusal.status, refusal.code, refusal.param) == (404, "not_supported", "call_id")


def test_the_key_is_asked_for_before_anything_is_explained() -> None:
    assert refused(KEYED, query={"call_id": "rtc_1"}).status == 401
    assert refused(KEYED, query={"intent": "chat"}).status == 401


def test_the_beta_header_is_noticed() -> None:
    assert admitted(OPEN, headers={"openai-beta": "assistants=v2, realtime=v1"}).wants_beta


@pytest.mark.parametrize(
    ("headers", "subprotocols"),
    [
        (bearer(KEY), ()),
        ({"authorization": f"bearer  {KEY} "}, ()),
        ({}, ("realtime", f"openai-insecure-api-key.{KEY}")),
    ],
)
def test_a_key_opens_the_door(headers: dict[str, str], subprotocols: tuple[str, ...]) -> None:
    assert admitted(KEYED, headers=headers, subprotocols=subprotocols).key == 1


@pytest.mark.parametrize(
    ("headers", "subprotocols"),
    [
        ({}, ()),
        (bearer(""), ()),
        ({"authorization": f"Basic {KEY}"}, ()),
        (bearer(f"{KEY}x"), ()),
        (bearer(KEY[:-1]), ()),
        (bearer("k\u00e9y-with-an-accent-in-it"), ()),
        ({}, ("openai-insecure-api-key.",)),
        (bearer("wrong"), (f"openai-insecure-api-key.{KEY}",)),
        (bearer("ek_wrong"), ()),
    ],
)
def test_no_or_a_wrong_key_is_refused(
    headers: dict[str, str], subprotocols: tuple[str, ...]
) -> None:
    refusal = refused(KEYED, headers=headers, subprotocols=subprotocols)
    assert (refusal.status, refusal.code) == (401, "invalid_api_key")


@pytest.mark.parametrize("as_subprotocol", [False, True])
def test_a_secret_brings_its_session(as_subprotocol: bool) -> None:
    session = {"type": "realtime", "model": "gpt-realtime", "instructions": "Be brief."}
    value = secret_of(session)
    shown: dict[str, Any] = (
        {"subprotocols": ("realtime", f"openai-insecure-api-key.{value}")}
        if as_subprotocol
        else {"headers": bearer(value)}
    )
    verdict = admitted(KEYED, **shown)
    assert (verdict.session_type, verdict.model, verdict.key) == (
        SessionType.REALTIME,
        "gpt-realtime",
        1,
    )
    assert ("instructions", "Be brief.") in verdict.patch.values
    named = admitted(KEYED, **shown, query={"model": "another"})
    assert named.model == "another"


def test_a_secret_decides_the_kind_of_session() -> None:
    headers = bearer(secret_of({"type": "transcription"}))
    for query in ({}, {"intent": "transcription"}):
        verdict = admitted(KEYED, headers=headers, query=query)
        assert verdict.session_type is SessionType.TRANSCRIPTION
        assert not verdict.has_stray_model
    assert admitted(KEYED, headers=headers, query={"model": "m"}).has_stray_model
    talking = bearer(secret_of({"type": "realtime"}))
    refusal = refused(KEYED, headers=talking, query={"intent": "transcription"})
    assert (refusal.status, refusal.param) == (400, "intent")


def test_a_secret_whose_time_is_over_is_refused() -> None:
    headers = bearer(secret_of({"type": "realtime"}, lasts_s=0))
    refusal = refused(KEYED, headers=headers)
    assert (refusal.status, refusal.code) == (401, "client_secret_expired")


def test_a_secret_of_a_server_that_knew_more_is_refused_by_name() -> None:
    headers = bearer(secret_of({"type": "realtime", "singing": True}))
    refusal = refused(KEYED, headers=headers)
    assert (refusal.status, refusal.code, refusal.param) == (
        400,
        "unknown_parameter",
        "session.singing",
    )


@pytest.mark.parametrize(
    ("origin", "host", "is_welcome"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1:8000", True),
        ("http://localhost:8000", "localhost:8000", True),
        ("http://[::1]:8000", "[::1]:8000", True),
        ("http://127.0.0.1:3000", "127.0.0.1:8000", False),  # another program's page
        ("http://localhost:8000", "127.0.0.1:8000", False),
        ("https://evil.example", "127.0.0.1:8000", False),
        ("http://evil.example:8000", "evil.example:8000", False),  # its name points to loopback
        ("null", "127.0.0.1:8000", False),
        ("http://127.0.0.1:99999", "127.0.0.1:8000", False),
        ("file://", "127.0.0.1:8000", False),
    ],
)
def test_foreign_pages_are_refused_on_loopback(origin: str, host: str, is_welcome: bool) -> None:
    verdict = judge(OPEN, headers={"origin": origin, "host": host})
    assert isinstance(verdict, Admission) is is_welcome
    if isinstance(verdict, Refusal):
        assert verdict.status == 403


def test_a_server_with_keys_may_be_reached_by_its_own_name() -> None:
    page = {"origin": "https://voice.example", "host": "voice.example"}
    assert admitted(KEYED, headers={**page, **bearer(KEY)})


def test_configured_origins_are_welcome() -> None:
    door = Door(Gate(KeyRing(), ("https://app.example",), loopback=True))
    assert admitted(door, headers={"origin": "https://app.example"})
    assert refused(door, headers={"origin": "https://app.example.evil"})


@pytest.mark.parametrize(
    ("named", "lead_ms"), [("", CONFIGURED), ("off", None), ("40", 40.0), ("60000", 60_000.0)]
)
def test_a_client_says_how_far_audio_may_run_ahead(named: str, lead_ms: float | None) -> None:
    assert admitted(OPEN, query={"lead_ms": named}).lead_ms == lead_ms


@pytest.mark.parametrize(
    ("query", "wants"), [({}, False), ({"details": ""}, False), ({"details": "off"}, False)]
)
def test_details_are_for_those_who_ask(query: dict[str, str], wants: bool) -> None:
    assert admitted(OPEN, query=query).wants_details is wants
    asking = {**query, "details": "on", "resume": "some-token", "model": "m"}
    assert admitted(OPEN, query=asking).wants_details


@pytest.mark.parametrize("named", ["yes", "ON", "1", "on ", "true" * 2000])
def test_other_words_for_details_are_refused(named: str) -> None:
    refusal = refused(OPEN, query={"details": named})
    assert (refusal.status, refusal.code, refusal.param) == (400, "invalid_value", "details")
    assert refusal.message.endswith("Expected 'on' or 'off'.") and len(refusal.message) < 200


@pytest.mark.parametrize(
    "named",
    ["39", "60001", "-5", "1e3", "soon", "9" * 5000, "²", "0000600000", "00000040" + "0" * 400],
)
def test_a_lead_that_is_none_is_refused(named: str) -> None:
    refusal = refused(OPEN, query={"lead_ms": named})
    assert (refusal.status, refusal.code, refusal.param) == (400, "invalid_value", "lead_ms")
    assert len(refusal.message) < 200
