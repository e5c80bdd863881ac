"""What `resume` in the address asks for, and what the door does with a token."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.websockets import WebSocket, WebSocketDisconnect

from realtime.access.gate import Gate
from realtime.access.keyring import KeyRing
from realtime.runtime.parking import Parking, SessionOver
from realtime.runtime.transport import Transport
from realtime.transports.endpoint import create_realtime_route
from realtime.transports.handshake import Admission, Door

OPEN = Door(Gate(KeyRing(), (), loopback=True))


@pytest.mark.parametrize(
    ("query", "is_resumable", "token"),
    [
        ({}, False, None),
        ({"resume": ""}, False, None),
        ({"resume": "new"}, True, None),
        ({"resume": "NEW"}, False, "NEW"),
        ({"resume": "abc_123-x", "model": "m"}, False, "abc_123-x"),
    ],
)
def test_the_address_says_whether_and_what_to_resume(
    query: dict[str, str], is_resumable: bool, token: str | None
) -> None:
    admission = OPEN.judge({}, [], query)
    assert isinstance(admission, Admission)
    assert (admission.is_resumable, admission.token) == (is_resumable, token)


class Seat:
    """A session that is over when somebody comes back, or takes them in."""

    def __init__(self, is_over: bool = False) -> None:
        self.is_over = is_over
        self.guests = 0

        self.details: list[bool] = []  # what each guest asked for

    async def attach(self, transport: Transport, wants_details: bool = False) -> None:
        if self.is_over:
            raise SessionOver
        self.guests += 1
        self.details.append(wants_details)


class House:
    def __init__(self) -> None:
        self.parking = Parking()

    def refusal(self) -> str | None:
        return None

    async def converse(self, transport: Transport, admission: Admission) -> None:
        raise AssertionError("nobody asked for a new conversation")


def knock(house: House, token: str, leaves: bool = False, more: str = "") -> list[dict[str, Any]]:
    """What the door sends to a client with this token. leaves: it goes before it is let in.

    more: of its query.
    """
    sent = list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        if leaves:
            raise OSError("gone")
        sent.append(message)

    async def run() -> None:
        route = create_realtime_route(OPEN, house).routes[0]
        scope = {
            "type": "websocket",
            "path": "/v1/realtime",
            "headers": [],
            "query_string": f"resume={token}{more}".encode(),
            "subprotocols": [],
            "extensions": {"websocket.http.response": {}},
        }
        endpoint = getattr(route, "endpoint")  # noqa: B009 (routes of other kinds have none)
        await endpoint(WebSocket(scope, receive, send))

    asyncio.run(run())
    return sent


def test_a_token_leads_to_its_session_once() -> None:
    house, seat = House(), Seat()
    token = house.parking.issue(seat)
    assert [message["type"] for message in knock(house, token)] == ["websocket.accept"]
    start, body = knock(house, token)
    assert (seat.guests, start["status"]) == (1, 404)
    assert json.loads(body["body"])["error"]["code"] == "session_not_found"


@pytest.mark.parametrize(("more", "wants"), [("", False), ("&details=on", True)])
def test_whoever_comes_back_says_anew_whether_details_are_wanted(more: str, wants: bool) -> None:
    house, seat = House(), Seat()
    knock(house, house.parking.issue(seat), more=more)
    assert seat.details == [wants]


def test_a_client_that_leaves_at_the_door_keeps_its_token() -> None:
    house, seat = House(), Seat()
    token = house.parking.issue(seat)
    with pytest.raises((OSError, WebSocketDisconnect)):
        knock(house, token, leaves=True)
    assert seat.guests == 0
    knock(house, token)
    assert seat.guests == 1


def test_a_session_that_ends_at_the_door_says_so_and_closes() -> None:
    house = House()
    token = house.parking.issue(Seat(is_over=True))
    accept, error, close = knock(house, token)
    assert accept["type"] == "websocket.accept"
    assert json.loads(error["text"])["error"]["code"] == "session_not_found"
    assert (close["type"], close["code"]) == ("websocket.close", 4000)
