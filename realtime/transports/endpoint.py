"""`/v1/realtime`: from a request to a conversation over its WebSocket."""

from __future__ import annotations

import time
from typing import Protocol

from fastapi import APIRouter
from starlette.websockets import WebSocket, WebSocketDisconnect

from realtime.http.answers import UNAUTHORISED_HEADERS, error_response
from realtime.protocol.encode import Encoder
from realtime.runtime.parking import Parking, SessionOver
from realtime.runtime.refusals import RefusalLog, ServerFull
from realtime.runtime.transport import Transport, TransportClosed
from realtime.session.notices import ErrorRaised
from realtime.transports.handshake import Admission, Door, Refusal
from realtime.transports.websocket import WebSocketTransport

CLOSE_MISTAKEN = 4000  # what OpenAI's server closes with when the request itself was wrong
CLOSE_TRY_LATER = 1013
SESSION_NOT_FOUND = "session_not_found"
PATH = "/v1/realtime"
MAX_SHOWN_CHARACTERS = 80  # of a wrong address

BETA_DISABLED = ErrorRaised(
    type="invalid_request_error",
    code="beta_api_shape_disabled",
    message="This server speaks the generally available Realtime API. Leave out the header "
    "'OpenAI-Beta: realtime=v1' and use a current client.",
)
STRAY_MODEL = ErrorRaised(
    type="invalid_request_error",
    code="invalid_parameter",
    message="You must not provide a model parameter for transcription sessions.",
    param="model",
)


class Reception(Protocol):
    """What this door asks of the house behind it."""

    def refusal(self) -> str | None:
        """Why no conversation can begin now, or None."""
        ...

    @property
    def parking(self) -> Parking:
        """Where lost clients find their sessions again."""
        ...

    async def converse(self, transport: Transport, admission: Admission) -> None:
        """Run one conversation to its end. Raises ServerFull before it begins."""
        ...


def create_realtime_route(door: Door, reception: Reception) -> APIRouter:
    """The route of the WebSocket endpoint, and the answer to WebSockets everywhere else."""
    router = APIRouter()
    welcome = _Welcome(reception, RefusalLog(time.monotonic))

    @router.websocket(PATH)
    async def realtime(socket: WebSocket) -> None:
        admission = door.judge(
            socket.headers, socket.scope.get("subprotocols", []), socket.query_params
        )
        try:
            await welcome.receive(socket, admission)
        except (WebSocketDisconnect, TransportClosed):
            return  # the client left before the conversation began

    @router.websocket("/{elsewhere:path}")
    async def astray(socket: WebSocket) -> None:
        shown = socket.url.path[:MAX_SHOWN_CHARACTERS]
        why = f"There is no WebSocket at {shown}: open conversations at {PATH}."
        try:
            await welcome.refuse(socket, Refusal(404, "not_found", why))
        except WebSocketDisconnect:
            return

    return router


class _Welcome:
    """What becomes of a client that knocks. Whoever is turned away stands in the log."""

    def __init__(self, reception: Reception, refusals: RefusalLog) -> None:
        self._reception = reception
        self._refusals = refusals

    async def receive(self, socket: WebSocket, admission: Admission | Refusal) -> None:
        if isinstance(admission, Refusal):
            await self.refuse(socket, admission)
            return
        reason = self._reception.refusal()
        if reason is not None:
            await self.refuse(socket, Refusal(503, "not_ready", reason))
            return
        if admission.token is not None:
            await self._resume(socket, admission, admission.token)
            return
        await socket.accept(admission.subprotocol)
        transport = WebSocketTransport(socket)
        if admission.wants_beta:
            await self._send_away(transport, BETA_DISABLED)
            return
        if admission.has_stray_model:
            await self._send_away(transport, STRAY_MODEL)
            return
        try:
            await self._reception.converse(transport, admission)
        except ServerFull as full:  # of which the log knows
            # After the upgrade, for a browser shows its page no answer before it.
            error = ErrorRaised("server_error", full.code, str(full))
            await _say_goodbye(transport, error, CLOSE_TRY_LATER)

    async def refuse(self, socket: WebSocket, refusal: Refusal) -> None:
        """Before the upgrade. Raises WebSocketDisconnect."""
        self._refusals.tell(refusal.code, refusal.message)
        headers = UNAUTHORISED_HEADERS if refusal.status == 401 else None
        answer = error_response(
            refusal.status, refusal.code, refusal.message, headers, refusal.param
        )
        await socket.send_denial_response(answer)

    async def _send_away(self, transport: Transport, error: ErrorRaised) -> None:
        """After the upgrade."""
        self._refusals.tell(error.code or error.type, error.message)
        await _say_goodbye(transport, error, CLOSE_MISTAKEN)

    async def _resume(self, socket: WebSocket, admission: Admission, token: str) -> None:
        """Go on with the session of this token. Two clients that show the same: the first has it.

        The dialect and the model were settled when the session began.
        """
        parking = self._reception.parking
        try:
            claim = parking.claim(token)
        except SessionOver as over:
            await self.refuse(socket, Refusal(404, SESSION_NOT_FOUND, str(over), "resume"))
            return
        try:
            await socket.accept(admission.subprotocol)
        except (WebSocketDisconnect, OSError):
            parking.give_back(claim)
            raise
        transport = WebSocketTransport(socket)
        try:
            await claim.session.attach(transport, admission.wants_details)
        except SessionOver as over:  # in this very moment
            error = ErrorRaised("invalid_request_error", SESSION_NOT_FOUND, str(over), "resume")
            await self._send_away(transport, error)


async def _say_goodbye(transport: Transport, error: ErrorRaised, code: int) -> None:
    await transport.send(Encoder().encode(error))
    await transport.close(code, error.message)
