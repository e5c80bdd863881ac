"""The shape of an HTTP error that OpenAI's clients understand."""

from __future__ import annotations

from starlette.responses import JSONResponse

UNAUTHORISED_HEADERS = {"WWW-Authenticate": "Bearer"}  # every 401 must say how to get in


def error_response(
    status: int, code: str, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """`{"error": {message, type, code, param}}` with an HTTP status."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    error = {"message": message, "type": kind, "code": code, "param": None}
    return JSONResponse({"error": error}, status, headers)
