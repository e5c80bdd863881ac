"""A refused body is thrown away long enough for its client to read why."""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from starlette.types import Message

from realtime.http.lingering import Lingering

MIB = 2**20
BODY_MIB = 200  # of a client that sends everything before it reads anything


def test_a_large_body_is_taken_to_its_end() -> None:
    taken = 0
    piece = bytes(MIB)
    sent: list[Message] = []

    async def receive() -> Message:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": piece, "more_body": taken < BODY_MIB}

    async def send(message: Message) -> None:
        sent.append({**message, "at": taken})

    asyncio.run(Lingering(Response("no", 413))({"type": "http"}, receive, send))
    assert [message["at"] for message in sent] == [0, 0, BODY_MIB]
