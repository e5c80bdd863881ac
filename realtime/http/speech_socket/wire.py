"""The socket of speech as its session sees it: JSON one way, JSON and audio the other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from realtime.http.visits import LAST_WORD_S
from realtime.protocol.json_text import compact
from realtime.protocol.problems import Problem
from realtime.runtime.time_limit import TimeLimit

CLOSE_GOING_AWAY = 1001
CLOSE_POLICY = 1008  # policy violation (RFC 6455, 7.4.1)
CLOSE_FAULT = 1011
CLOSE_TRY_LATER = 1013
MAX_REASON_BYTES = 123  # a close frame holds 125 bytes, two of which are the code
FAREWELL_S = 5.0  # for a client that has not read for long to read on, and be told why

_GONE = (WebSocketDisconnect, RuntimeError, OSError)  # what sending to nobody ends with

LastWord = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    pass


class ClientGone(Exception):
    """Nobody is at the other end."""


class Farewell(Exception):
    """The server ends the connection. `problem`: what the client is told before."""

    def __init__(self, code: int, reason: str, problem: Problem | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.problem = problem


class SpeechWire:
    """An accepted WebSocket. Each frame waits until the client reads, `unread_s` at most."""

    def __init__(self, socket: WebSocket, unread_s: float) -> None:
        self._socket = socket
        self._unread_s = unread_s
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
        """Say why, then what is `last` to be said, and close. Bounded; raises nothing."""
        limit_s = LAST_WORD_S if farewell.code == CLOSE_GOING_AWAY else FAREWELL_S
        short = farewell.reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        # The client may have gone, or may never read again.
        with contextlib.suppress(TimeoutError, ClientGone, Farewell, *_GONE):
            async with asyncio.timeout(limit_s):
                if farewell.problem is not None:
                    await self.tell_problem(farewell.problem)
                await last()
                await self._socket.close(farewell.code, short)
        self.release()

    def release(self) -> None:
        """Nothing is sent any more: no timer may stay."""
        self._limit.close()

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            async with self._turn:
                with self._limit:
                    await self._socket.send(message)
        except TimeoutError:
            why = f"client does not read: no progress for {self._unread_s:g} s"
            raise Farewell(CLOSE_POLICY, why) from None
        except _GONE as error:
            raise ClientGone from error
        self._note()

    def _note(self) -> None:
        self.active_s = asyncio.get_running_loop().time()
