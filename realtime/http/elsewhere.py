"""Addresses of OpenAI's Realtime API that this server does not serve: each says what to use."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Match

from realtime.http.answers import error_response

_CALLS = (
    "This server takes no WebRTC or SIP calls. Open a WebSocket at /v1/realtime; a browser shows "
    "a client secret there as the subprotocol openai-insecure-api-key.SECRET."
)
_BETA = (
    "This address belongs to the beta interface. Use POST /v1/realtime/client_secrets with "
    "{kind}, whose answer has the secret under 'value'."
)
_TRANSLATIONS = (
    "This server has no translation sessions. Open a realtime session whose instructions ask for "
    "a translation."
)

# By path; "{rest:path}" stands for whatever follows.
NOT_SUPPORTED = {
    "/v1/realtime/calls": _CALLS,
    "/v1/realtime/calls/{rest:path}": _CALLS,
    "/v1/realtime/sessions": _BETA.format(kind="session.type 'realtime'"),
    "/v1/realtime/transcription_sessions": _BETA.format(kind="session.type 'transcription'"),
    "/v1/realtime/translations/client_secrets": _TRANSLATIONS,
}


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

# Of addresses under /v1, for a base URL that lacks it.
WITHOUT_VERSION = ("/audio/", "/models", "/realtime")

_SOCKET = (
    "This address is a WebSocket: connect to it with ws:// or wss://, with an OpenAI Realtime SDK "
    "for instance, or open this server's own page at /."
)
_SPEECH_SOCKET = (
    "This address is a WebSocket: connect to it with ws:// or wss://. POST /v1/audio/speech speaks "
    "a whole text without one."
)
# By path: what is told to whoever comes without a WebSocket.
SOCKETS = {"/v1/realtime": _SOCKET, "/v1/audio/speech/stream": _SPEECH_SOCKET}


def create_elsewhere_routes() -> APIRouter:
    """404, for SDKs try again after 5xx; and 426 for whoever asks for a WebSocket without one."""
    router = APIRouter()
    for path, message in SOCKETS.items():
        router.add_api_route(
            path,
            _upgrade(message),
            methods=["GET"],
            response_model=None,
            include_in_schema=False,  # nothing that a program would ask for
        )
    for path, message in NOT_SUPPORTED.items():
        router.add_api_route(path, _answer(message), methods=["POST"], response_model=None)
    return router


async def answer_stray(request: Request, error: Exception) -> JSONResponse:
    """What no route takes, in the shape that OpenAI's clients understand; for the application."""
    status = getattr(error, "status_code", 404)
    what = f"{request.method} {request.url.path[:100]!r}"
    told: dict[str, str] = getattr(error, "headers", None) or {}
    if "Allow" in told:
        # The framework tells the methods of the first route alone.
        taken = _methods(request, request.url.path)
        allowed = {"Allow": ", ".join(taken) or told["Allow"]}
        message = f"{what} is not served; the address takes {allowed['Allow']}."
        return error_response(405, "method_not_allowed", message, allowed)
    message = f"{what} is nothing that this server has; /openapi.json lists what it serves."
    meant = _meant(request)
    if meant is not None:
        message = f"{what} is nothing that this server has. Did you mean {meant}?"
    return error_response(status, "not_found", message)


def _meant(request: Request) -> str | None:
    """The address that a stray one was probably meant for."""
    path = request.url.path
    if path.startswith(WITHOUT_VERSION):
        return f"/v1{path.rstrip('/')}"
    shorter = path.rstrip("/")
    return shorter if shorter != path and _methods(request, shorter) else None


def _methods(request: Request, path: str) -> list[str]:
    """Which methods some route takes at this path."""
    routes: list[BaseRoute] = request.app.routes

    def is_taken(method: str) -> bool:
        scope = {**request.scope, "path": path, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in routes)

    return [method for method in METHODS if is_taken(method)]


def _upgrade(message: str):
    async def answer(_request: Request) -> JSONResponse:
        return error_response(426, "upgrade_required", message, {"Upgrade": "websocket"})

    return answer


def _answer(message: str):
    async def answer(_request: Request) -> JSONResponse:
        return error_response(404, "not_supported", message)

    return answer
