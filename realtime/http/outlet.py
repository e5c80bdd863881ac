"""Answers that are made while their client waits: sent piece by piece, given up once it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from realtime.http.visits import LAST_WORD_S, TimeIsUp, Visit

# Of a client that reads nothing: a player that was paused for longer has to ask again.
SEND_TIMEOUT_S = 120.0


class ClientGone(Exception):
    """Nobody takes the answer any more."""


class Outlet:
    """The way back to one client. Everything raises ClientGone if it reads nothing for too long.

    headers: of the response, whatever it will be. visit: which the server may have to end.
    """

    def __init__(self, scope: Scope, send: Send, headers: Mapping[str, str], visit: Visit) -> None:
        self.visit = visit
        self._scope = scope
        self._send = send
        self._headers = headers
        self.has_begun = False

    async def answer(self, response: Response) -> None:
        """A whole response, where none has begun."""
        self.has_begun = True
        response.headers.update(self._headers)
        async with self._deadline():
            await response(self._scope, _receive_nothing, self._send)

    async def begin(self, media_type: str, headers: Mapping[str, str]) -> None:
        """200, with bytes to follow."""
        self.has_begun = True
        head = MutableHeaders({**headers, **self._headers, "Content-Type": media_type})
        await self._tell({"type": "http.response.start", "status": 200, "headers": head.raw})

    async def write(self, data: bytes) -> None:
        await self._tell({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """The response is whole. Without this the connection breaks off, for the client to see."""
        await self._tell({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, message: Message) -> None:
        async with self._deadline():
            await self._send(message)

    @asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        try:
            async with self.visit.limit(SEND_TIMEOUT_S, LAST_WORD_S):
                yield
        except TimeIsUp:
            raise ClientGone from None


class Exchange(Response):
    """A response that is worked out once the request has been read.

    work: is cancelled as soon as the client has gone; what of it takes time holds itself to
    `unless_stopped(outlet.visit)`. held: is let go at the end of it, the visit too.
    """

    def __init__(
        self,
        work: Callable[[Outlet], Awaitable[None]],
        headers: Mapping[str, str],
        held: ExitStack,
        visit: Visit,
    ) -> None:
        super().__init__()
        self._work = work
        self._answer_headers = headers
        self._held = held
        self._visit = visit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            try:
                async with asyncio.TaskGroup() as tasks:
                    watch = tasks.create_task(_watch(receive))
                    await self._work(Outlet(scope, send, self._answer_headers, self._visit))
                    watch.cancel()
            except* ClientGone:
                pass  # what was made for it has been aborted, and nobody is there to be told


async def _watch(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    raise ClientGone


async def _receive_nothing() -> Message:
    await asyncio.Event().wait()
    raise AssertionError("an event that nobody sets was set")
