"""The shape of an HTTP error that OpenAI's clients understand."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from realtime.access.denial import Denied

CODE_IN_SCOPE = "parley.error_code"  # where whoever counts answers finds what was refused
UNAUTHORISED_HEADERS = {"WWW-Authenticate": "Bearer"}  # every 401 must say how to get in


class ErrorResponse(JSONResponse):
    """An error that tells its code to the server's own middleware as well."""

    code: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[CODE_IN_SCOPE] = self.code
        await super().__call__(scope, receive, send)


def error_response(
    status: int,
    code: str,
    message: str,
    headers: dict[str, str] | None = None,
    param: str | None = None,
) -> JSONResponse:
    """`{"error": {message, type, code, param}}` with an HTTP status."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    error = {"message": message, "type": kind, "code": code, "param": param}
    response = ErrorResponse({"error": error}, status, headers)
    response.code = code
    return response


def denial_response(denied: Denied) -> JSONResponse:
    """What a client reads that the gate has turned away."""
    headers = UNAUTHORISED_HEADERS if denied.status == 401 else None
    return error_response(denied.status, denied.code, denied.message, headers)
