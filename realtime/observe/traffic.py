"""Counts what comes in and goes out: answers by route and status, refusals by code, bytes."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from realtime.observe.metrics import OTHER, Count, Metrics

# A client may write any word there.
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_ACCEPTED = 101
_FAILED = 500
_CLOSED_UNANSWERED = 403  # what a socket that is closed before it was accepted is answered with


class Traffic:
    """An ASGI middleware. code_in_scope: the key under which an error tells its code."""

    def __init__(self, app: ASGIApp, metrics: Metrics, code_in_scope: str) -> None:
        self._app = app
        self._metrics = metrics
        self._code_in_scope = code_in_scope

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind: str = scope["type"]
        if kind not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        connection = (kind,)
        is_answered = False

        async def take() -> Message:
            message = await receive()
            size_bytes = _size_bytes(message)
            if size_bytes:
                self._metrics.add(Count.RECEIVED_BYTES, size_bytes, connection)
            return message

        async def give(message: Message) -> None:
            nonlocal is_answered
            if not is_answered:
                status = _status(message)
                if status is not None:
                    is_answered = True
                    self._answer(scope, status)
            size_bytes = _size_bytes(message)
            if size_bytes:
                self._metrics.add(Count.SENT_BYTES, size_bytes, connection)
            await send(message)

        try:
            await self._app(scope, take, give)
        except Exception:
            if not is_answered:
                self._answer(scope, _FAILED)
            raise

    def _answer(self, scope: Scope, status: int) -> None:
        # A WebSocket begins as a GET.
        method = scope.get("method", "GET")
        method = method if method in _METHODS else OTHER
        labels = (method, _route(scope), str(status))
        self._metrics.add(Count.HTTP_REQUESTS, labels=labels)
        code = scope.get(self._code_in_scope)
        if code is not None:
            self._metrics.add(Count.HTTP_REFUSALS, labels=(code,))


def _route(scope: Scope) -> str:
    """As it is declared: addresses that nobody declared, files of the page too, are one."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else OTHER


def _status(message: Message) -> int | None:
    """Of the message that answers a request; None of any other."""
    match message["type"]:
        case "http.response.start" | "websocket.http.response.start":
            return message["status"]
        case "websocket.accept":
            return _ACCEPTED
        case "websocket.close":
            return _CLOSED_UNANSWERED
        case _:
            return None


def _size_bytes(message: Message) -> int:
    content: Any = message.get("body") or message.get("text") or message.get("bytes") or b""
    if isinstance(content, str) and not content.isascii():
        return len(content.encode(errors="surrogatepass"))
    return len(content)
