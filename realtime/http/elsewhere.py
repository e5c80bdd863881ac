"""Addresses of OpenAI's Realtime API that this server does not serve: each says what to use."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

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


# Of addresses under /v1, for a base URL that lacks it.
WITHOUT_VERSION = ("/audio/", "/models", "/realtime")

_SOCKET = (
    "This address is a WebSocket: connect to it with ws:// or wss://, with an OpenAI Realtime SDK "
    "for instance, or open this server's own page at /."
)


def create_elsewhere_routes() -> APIRouter:
    """404, for SDKs try again after 5xx; and 426 for whoever asks for the WebSocket without one."""
    router = APIRouter()
    router.add_api_route("/v1/realtime", _upgrade, methods=["GET"], response_model=None)
    for path, message in NOT_SUPPORTED.items():
        router.add_api_route(path, _answer(message), methods=["POST"], response_model=None)
    return router


async def answer_stray(request: Request, error: Exception) -> JSONResponse:
    """What no route takes, in the shape that OpenAI's clients understand; for the application."""
    status = getattr(error, "status_code", 404)
    what = f"{request.method} {request.url.path[:100]!r}"
    allowed: dict[str, str] = getattr(error, "headers", None) or {}
    if "Allow" in allowed:
        message = f"{what} is not served; the address takes {allowed['Allow']}."
        return error_response(405, "method_not_allowed", message, allowed)
    message = f"{what} is nothing that this server has; /openapi.json lists what it serves."
    if request.url.path.startswith(WITHOUT_VERSION):
        message = f"{what} is nothing that this server has. Did you mean /v1{request.url.path}?"
    return error_response(status, "not_found", message)


async def _upgrade(_request: Request) -> JSONResponse:
    return error_response(426, "upgrade_required", _SOCKET, {"Upgrade": "websocket"})


def _answer(message: str):
    async def answer(_request: Request) -> JSONResponse:
        return error_response(404, "not_supported", message)

    return answer
