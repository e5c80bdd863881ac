"""The shape of an HTTP error that OpenAI's clients understand."""

from __future__ import annotations

from starlette.responses import JSONResponse

from realtime.access.denial import Denied

UNAUTHORISED_HEADERS = {"WWW-Authenticate": "Bearer"}  # every 401 must say how to get in


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
    return JSONResponse({"error": error}, status, headers)


def denial_response(denied: Denied) -> JSONResponse:
    """What a client reads that the gate has turned away."""
    headers = UNAUTHORISED_HEADERS if denied.status == 401 else None
    return error_response(denied.status, denied.code, denied.message, headers)
