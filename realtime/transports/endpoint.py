"""`/v1/realtime`: from a request to a conversation over its WebSocket."""

from __future__ import annotations

from typing import Protocol

from fastapi import APIRouter
from starlette.websockets import WebSocket, WebSocketDisconnect

from realtime.http.answers import UNAUTHORISED_HEADERS, error_response
from realtime.protocol.encode import Encoder
from realtime.runtime.registry import ServerFull
from realtime.runtime.transport import Transport, TransportClosed
from realtime.session.notices import ErrorRaised
from realtime.session.settings import SessionType
from realtime.transports.handshake import Admission, Door, Refusal
from realtime.transports.websocket import WebSocketTransport

CLOSE_BETA = 4000  # what OpenAI's server answers to the dialect before the general release
CLOSE_TRY_LATER = 1013

BETA_DISABLED = ErrorRaised(
    type="invalid_request_error",
    code="beta_api_shape_disabled",
    message="This server speaks the generally available Realtime API. Leave out the header "
    "'OpenAI-Beta: realtime=v1' and use a current client.",
)


class Reception(Protocol):
    """What this door asks of the house behind it."""

    def refusal(self) -> str | None:
        """Why no conversation can begin now, or None."""
        ...

    async def converse(
        self, transport: Transport, session_type: SessionType, model: str | None
    ) -> None:
        """Run one conversation to its end. Raises ServerFull before it begins."""
        ...


def create_realtime_route(door: Door, reception: Reception) -> APIRouter:
    """The route of the WebSocket endpoint."""
    router = APIRouter()

    @router.websocket("/v1/realtime")
    async def realtime(socket: WebSocket) -> None:
        admission = door.judge(
            socket.headers, socket.scope.get("subprotocols", []), socket.query_params
        )
        try:
            await _welcome(socket, admission, reception)
        except (WebSocketDisconnect, TransportClosed):
            return  # the client left before the conversation began

    return router


async def _welcome(socket: WebSocket, admission: Admission | Refusal, reception: Reception) -> None:
    if isinstance(admission, Refusal):
        headers = UNAUTHORISED_HEADERS if admission.status == 401 else None
        refusal = error_response(admission.status, admission.code, admission.message, headers)
        await socket.send_denial_response(refusal)
        return
    reason = reception.refusal()
    if reason is not None:
        await socket.send_denial_response(error_response(503, "not_ready", reason))
        return
    await socket.accept(admission.subprotocol)
    transport = WebSocketTransport(socket)
    if admission.wants_beta:
        await _send_away(transport, BETA_DISABLED, CLOSE_BETA)
        return
    try:
        await reception.converse(transport, admission.session_type, admission.model)
    except ServerFull as full:
        # After the upgrade, for a browser shows its page no answer before it.
        error = ErrorRaised("server_error", "too_many_sessions", str(full))
        await _send_away(transport, error, CLOSE_TRY_LATER)


async def _send_away(transport: Transport, error: ErrorRaised, code: int) -> None:
    await transport.send(Encoder().encode(error))
    await transport.close(code, error.message)
