"""The socket of speech as its session sees it: JSON one way, JSON and audio the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from realtime.protocol.json_text import compact
from realtime.protocol.problems import Problem
from realtime.runtime.time_limit import TimeLimit

CLOSE_GOING_AWAY = 1001
CLOSE_POLICY = 1008  # policy violation (RFC 6455, 7.4.1)
CLOSE_FAULT = 1011
CLOSE_TRY_LATER = 1013
MAX_REASON_BYTES = 123  # a close frame holds 125 bytes, two of which are the code
FAREWELL_S = 5.0  # for a client to read what was sent before, and be told why
TOO_SLOW = "client_too_slow"

_GONE = (WebSocketDisconnect, RuntimeError, OSError)  # what sending to nobody ends with

LastWord = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    pass


class ClientGone(Exception):
    """Nobody is at the other end."""


class Farewell(Exception):
    """The server ends the connection. `problem`: what the client is told before; limit_s: how long
    it has to read that."""

    def __init__(
        self,
        code: int,
        reason: str,
        problem: Problem | None = None,
        limit_s: float = FAREWELL_S,
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.problem = problem
        self.limit_s = limit_s


class SpeechWire:
    """An accepted WebSocket. Each frame waits until the client reads, `unread_s` at most; a client
    that reads later than that has `late_s` more to learn why nothing follows."""

    def __init__(self, socket: WebSocket, unread_s: float, late_s: float) -> None:
        self._socket = socket
        self._unread_s = unread_s
        self._late_s = late_s
        self._limit = TimeLimit(unread_s)
        self._turn = asyncio.Lock()
        self.active_s = asyncio.get_running_loop().time()  # when a frame last went or came

    async def receive(self) -> str | bytes:
        """Raises ClientGone."""
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise ClientGone
        self._note()
        text: str | None = message.get("text")
        return message["bytes"] if text is None else text

    async def tell(self, kind: str, **fields: Any) -> None:
        """Raises ClientGone, and Farewell for a client that does not read."""
        await self._send({"type": "websocket.send", "text": compact({"type": kind, **fields})})

    async def tell_problem(self, problem: Problem) -> None:
        await self.tell("error", code=problem.code, message=problem.message, param=problem.param)

    async def send_audio(self, data: bytes) -> None:
        """Raises as `tell`. Cancelled while it waits, it has sent nothing."""
        await self._send({"type": "websocket.send", "bytes": data})

    async def part(self, farewell: Farewell, last: LastWord = _nothing) -> None:
        """Say why, then what is `last` to be said, and close. Bounded; raises nothing.

        What the client still writes meanwhile is thrown away: one that reads only when it has
        written all would wait for ever, and a connection that is closed with something unread is
        reset, and what its client has not read yet is lost.
        """
        self.release()
        self._limit = TimeLimit(farewell.limit_s)
        try:
            async with asyncio.timeout(farewell.limit_s), asyncio.TaskGroup() as tasks:
                ignoring = tasks.create_task(self._ignore(), name="speech farewell")
                await self._say(farewell, last)
                ignoring.cancel()
        except* (ClientGone, Farewell, *_GONE):  # a timeout too: it may never read again
            pass
        finally:
            self.release()

    def release(self) -> None:
        """Nothing is sent any more: no timer may stay."""
        self._limit.close()

    async def _ignore(self) -> None:
        while True:
            await self.receive()

    async def _say(self, farewell: Farewell, last: LastWord) -> None:
        if farewell.problem is not None:
            await self.tell_problem(farewell.problem)
        await last()
        short = farewell.reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        await self._socket.close(farewell.code, short)

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            async with self._turn:
                with self._limit:
                    await self._socket.send(message)
        except TimeoutError:
            raise self._too_slow() from None
        except _GONE as error:
            raise ClientGone from error
        self._note()

    def _too_slow(self) -> Farewell:
        why = f"client does not read: no progress for {self._unread_s:g} s"
        advice = "Read while you write, and connect again to go on."
        problem = Problem(TOO_SLOW, f"Nothing was read for {self._unread_s:g} s. {advice}", None)
        return Farewell(CLOSE_POLICY, why, problem, self._late_s)

    def _note(self) -> None:
        self.active_s = asyncio.get_running_loop().time()
