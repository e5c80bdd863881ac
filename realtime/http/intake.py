"""How every audio request comes in: named, admitted, given a place, read, and then answered."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

from fastapi import Request
from starlette.responses import Response

from realtime.http.lingering import refusal_with
from realtime.http.outlet import Exchange, Outlet
from realtime.http.reception import Reception, Refused
from realtime.http.room import Room
from realtime.http.stopping import unless_stopped

ID_BYTES = 12  # never the same twice

Work = Callable[[Outlet], Awaitable[None]]
Read = Callable[[str, ExitStack], Awaitable[Work]]


class Intake:
    """room: for all requests that come in here."""

    def __init__(self, reception: Reception, room: Room) -> None:
        self._reception = reception
        self._room = room

    async def take(self, request: Request, read: Read) -> Response:
        """The request's id goes out as `x-request-id`, as OpenAI's SDKs show it.

        read: (the id, what is held until the answer is out) to the work that answers; it reads the
            whole request, and may raise Refused.
        """
        request_id = f"req_{secrets.token_hex(ID_BYTES)}"
        headers = {"x-request-id": request_id}
        with ExitStack() as held:
            try:
                visit = held.enter_context(self._reception.visit(request.headers))
                held.enter_context(self._room.place())
                async with unless_stopped(visit):
                    work = await read(request_id, held)
            except Refused as refused:
                return refusal_with(headers, refused.response)
            return Exchange(work, headers, held.pop_all(), visit)
