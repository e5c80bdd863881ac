"""Who may open a conversation."""

from __future__ import annotations

import pytest

from realtime.session.settings import SessionType
from realtime.transports.handshake import Admission, Door, Refusal

KEY = "a-key-of-sixteen-characters"
OPEN = Door(keys=(), origins=(), loopback=True)
KEYED = Door(keys=("another-long-enough-key", KEY), origins=(), loopback=False)


def judge(
    door: Door,
    *,
    headers: dict[str, str] | None = None,
    subprotocols: tuple[str, ...] = (),
    query: dict[str, str] | None = None,
) -> Admission | Refusal:
    return door.judge({"host": "127.0.0.1:8000", **(headers or {})}, subprotocols, query or {})


def test_a_program_may_come_in_without_anything() -> None:
    assert judge(OPEN) == Admission(None, SessionType.REALTIME, None, wants_beta=False)


def test_only_the_realtime_subprotocol_is_chosen() -> None:
    offered = ("openai-insecure-api-key.x", "realtime", "openai-agents-sdk.1")
    verdict = judge(OPEN, subprotocols=offered)
    assert isinstance(verdict, Admission)
    assert verdict.subprotocol == "realtime"
    without = judge(OPEN, subprotocols=("chat",))
    assert isinstance(without, Admission)
    assert without.subprotocol is None


def test_the_query_names_model_and_kind() -> None:
    verdict = judge(OPEN, query={"model": "gpt-realtime", "unknown": "1"})
    assert isinstance(verdict, Admission)
    assert (verdict.model, verdict.session_type) == ("gpt-realtime", SessionType.REALTIME)
    hearing = judge(OPEN, query={"intent": "transcription"})
    assert isinstance(hearing, Admission)
    assert hearing.session_type is SessionType.TRANSCRIPTION
    long = judge(OPEN, query={"model": "m" * 5000})
    assert isinstance(long, Admission)
    assert len(long.model or "") == 256


def test_the_beta_header_is_noticed() -> None:
    verdict = judge(OPEN, headers={"openai-beta": "assistants=v2, realtime=v1"})
    assert isinstance(verdict, Admission)
    assert verdict.wants_beta


@pytest.mark.parametrize(
    ("headers", "subprotocols"),
    [
        ({"authorization": f"Bearer {KEY}"}, ()),
        ({"authorization": f"bearer  {KEY} "}, ()),
        ({}, ("realtime", f"openai-insecure-api-key.{KEY}")),
    ],
)
def test_a_key_opens_the_door(headers: dict[str, str], subprotocols: tuple[str, ...]) -> None:
    verdict = judge(KEYED, headers=headers, subprotocols=subprotocols)
    assert isinstance(verdict, Admission)


@pytest.mark.parametrize(
    ("headers", "subprotocols"),
    [
        ({}, ()),
        ({"authorization": "Bearer "}, ()),
        ({"authorization": f"Basic {KEY}"}, ()),
        ({"authorization": f"Bearer {KEY}x"}, ()),
        ({"authorization": f"Bearer {KEY[:-1]}"}, ()),
        ({"authorization": "Bearer k\u00e9y-with-an-accent-in-it"}, ()),
        ({}, ("openai-insecure-api-key.",)),
        ({"authorization": "Bearer wrong"}, (f"openai-insecure-api-key.{KEY}",)),
    ],
)
def test_no_or_a_wrong_key_is_refused(
    headers: dict[str, str], subprotocols: tuple[str, ...]
) -> None:
    verdict = judge(KEYED, headers=headers, subprotocols=subprotocols)
    assert isinstance(verdict, Refusal)
    assert (verdict.status, verdict.code) == (401, "invalid_api_key")


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
    keyed = {**page, "authorization": f"Bearer {KEY}"}
    assert isinstance(judge(KEYED, headers=keyed), Admission)


def test_configured_origins_are_welcome() -> None:
    door = Door(keys=(), origins=("https://app.example",), loopback=True)
    assert isinstance(judge(door, headers={"origin": "https://app.example"}), Admission)
    assert isinstance(judge(door, headers={"origin": "https://app.example.evil"}), Refusal)
