"""Answers to requests whose body is not read: the connection ends, but not under the answer.

A connection that is closed while the other side still sends is reset, and many clients then lose
the answer that they have not read yet. So the body is thrown away for a moment; clients that read
while they send stop by themselves.
"""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

LINGER_S = 2.0  # a round trip to anywhere, and a slow client's time to look
LINGER_BYTES = 512 * 2**20  # of clients of this machine, which read only when all is sent


def refusal_with(headers: dict[str, str], response: Response) -> Response:
    """A refusal with these headers too; where it closes the connection, it is not lost by that."""
    response.headers.update(headers)
    return Lingering(response) if response.headers.get("connection") == "close" else response


class Lingering(Response):
    """Another response, after which the connection is closed."""

    def __init__(self, response: Response) -> None:
        super().__init__(status_code=response.status_code)
        response.headers["Connection"] = "close"
        self._response = response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_without_end(message: Message) -> None:
            is_body = message["type"] == "http.response.body"
            await send({**message, "more_body": True} if is_body else message)

        await self._response(scope, receive, send_without_end)
        await _throw_away(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _throw_away(receive: Receive) -> None:
    taken_bytes, may_come = 0, True
    try:
        async with asyncio.timeout(LINGER_S):
            while may_come and taken_bytes < LINGER_BYTES:
                message = await receive()
                taken_bytes += len(message.get("body", b""))
                may_come = message.get("more_body", False)
    except TimeoutError:
        pass
