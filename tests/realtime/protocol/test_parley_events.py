"""Events of Parley's own: pings and their answers, and the details that a client may ask for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.protocol.decode import decode
from realtime.protocol.encode import Encoder
from realtime.protocol.messages import Ping
from realtime.session.events import ClientRefused
from realtime.session.notices import Detail, HeardSoFar, Pong, ShownState, StateShown


def ping(**fields: Any) -> object:
    return decode(json.dumps({"type": "parley.ping", **fields}))


@pytest.mark.parametrize("name", ["", "17", "é" * 64])
def test_a_ping_may_have_a_name(name: str) -> None:
    assert ping(id=name) == ping(id=name, event_id="e") == Ping(name)


def test_a_ping_needs_none() -> None:
    assert ping() == ping(id=None) == Ping(None)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"id": 17}, "id"),
        ({"id": "x" * 65}, "id"),
        ({"id": ["x"]}, "id"),
        ({"id": True}, "id"),
        ({"name": "x"}, "name"),
        ({"event_id": "x" * 513}, "event_id"),
    ],
)
def test_a_ping_that_is_none_is_refused(fields: dict[str, Any], param: str) -> None:
    refusal = ping(**fields)
    assert isinstance(refusal, ClientRefused)
    assert refusal.param == param and len(refusal.message) < 400


@pytest.mark.parametrize("name", [None, "", "17", 'a "quoted" \u2028 name'])
def test_a_pong_bears_the_name_of_its_ping(name: str | None) -> None:
    told = json.loads(Encoder("a").encode(Pong(name)))
    assert told == {"type": "parley.pong", "event_id": "event_a_1", "id": name}


@pytest.mark.parametrize(
    ("detail", "body"),
    [
        (StateShown(ShownState.LISTENING), {"type": "parley.state", "state": "listening"}),
        (StateShown(ShownState.HELD), {"type": "parley.state", "state": "held"}),
        (
            HeardSoFar("item_1", "What time"),
            {"type": "parley.transcript", "item_id": "item_1", "transcript": "What time"},
        ),
        (
            HeardSoFar("item_1", ""),
            {"type": "parley.transcript", "item_id": "item_1", "transcript": ""},
        ),
    ],
)
def test_the_event_of_a_detail(detail: Detail, body: dict[str, Any]) -> None:
    encoder = Encoder("a")
    encoder.encode(Pong(None))
    assert json.loads(encoder.encode_detail(detail)) == {"event_id": "event_a_2", **body}


def test_the_states_are_those_of_the_protocol() -> None:
    assert [state.value for state in ShownState] == [
        "listening",
        "hearing",
        "thinking",
        "speaking",
        "held",
    ]
