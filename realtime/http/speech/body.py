"""Reads the JSON body of a speech request: bounded in size and in time."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from realtime.http.faults import unreadable_body
from realtime.http.reception import Refused, refuse
from realtime.protocol.json_text import Unreadable, read_object

MAX_BODY_BYTES = 40_000_000  # 30 s of uncompressed stereo at 96 kHz and 24 bits, in base64
CHUNK_TIMEOUT_S = 10.0  # for a client that says it sends a body and does not
BODY_TIMEOUT_S = 120.0  # the largest body over the slowest line worth waiting for


async def read_json(request: Request) -> dict[str, Any]:
    """The body's JSON object. Raises Refused: 400, 408, 413 or 415.

    A refusal closes the connection if the rest of the body may be on its way.
    """
    try:
        _check_type(request.headers.get("content-type"))
        _check_length(request.headers.get("content-length"))
        body = await _receive(request)
    except Refused as refused:
        refused.response.headers["Connection"] = "close"
        raise
    # 40 MB take a tenth of a second to look through.
    return await asyncio.to_thread(_parse, body)


def _check_type(content_type: str | None) -> None:
    kind = (content_type or "application/json").split(";")[0].strip().lower()
    if kind != "application/json":
        raise refuse(
            415,
            "unsupported_media_type",
            f"The request body must be JSON, but its Content-Type is '{kind[:80]}': send "
            "'Content-Type: application/json'.",
        )


def _check_length(declared: str | None) -> None:
    """Refuse before anything is read; what is sent without a length is counted."""
    if declared is not None and declared.isascii() and declared.isdigit():
        if len(declared) > 18 or int(declared) > MAX_BODY_BYTES:
            raise _too_large()


async def _receive(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S), asyncio.timeout(CHUNK_TIMEOUT_S) as pause:
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise _too_large()
                pause.reschedule(asyncio.get_running_loop().time() + CHUNK_TIMEOUT_S)
    except TimeoutError:
        raise refuse(
            408,
            "request_timeout",
            f"The request body did not arrive: nothing for {CHUNK_TIMEOUT_S:g} s, or not all of it "
            f"within {BODY_TIMEOUT_S:g} s.",
        ) from None
    except ClientDisconnect:
        raise Refused(Response(status_code=400)) from None  # nobody reads it
    return bytes(body)


def _parse(body: bytes) -> dict[str, Any]:
    try:
        return read_object(body.decode())
    except UnicodeDecodeError as error:
        why = f"The request body is not UTF-8 text (byte {error.start})."
    except Unreadable as error:
        why = unreadable_body(error)
    raise refuse(400, "invalid_json", why)


def _too_large() -> Refused:
    return refuse(
        413,
        "request_too_large",
        f"The request body is larger than {MAX_BODY_BYTES} bytes. A recording of 30 s is enough "
        "for a voice; compressed as FLAC or MP3 it is far smaller.",
    )
