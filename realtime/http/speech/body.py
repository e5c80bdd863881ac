"""Reads the JSON body of a speech request: bounded in size and in time."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from starlette.requests import Request

from realtime.http.bodies import receive
from realtime.http.faults import unreadable_body
from realtime.http.reception import Refused, refuse
from realtime.protocol.json_text import Unreadable, read_object

MAX_BODY_BYTES = 40_000_000  # 30 s of uncompressed stereo at 96 kHz and 24 bits, in base64
BODY_TIMEOUT_S = 120.0  # the largest body over the slowest line worth waiting for


async def read_json(request: Request) -> dict[str, Any]:
    """The body's JSON object. Raises Refused: 400, 408, 413 or 415.

    A refusal closes the connection if the rest of the body may be on its way.
    """
    try:
        _check_type(request.headers.get("content-type"))
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


async def _receive(request: Request) -> bytes:
    too_large = (
        f"The request body is larger than {MAX_BODY_BYTES} bytes. A recording of 30 s is enough "
        "for a voice; compressed as FLAC or MP3 it is far smaller."
    )
    body = bytearray()
    chunks = receive(request, MAX_BODY_BYTES, BODY_TIMEOUT_S, too_large=too_large)
    async with aclosing(chunks):
        async for chunk in chunks:
            body += chunk
    return bytes(body)


def _parse(body: bytes) -> dict[str, Any]:
    try:
        return read_object(body.decode())
    except UnicodeDecodeError as error:
        why = f"The request body is not UTF-8 text (byte {error.start})."
    except Unreadable as error:
        why = unreadable_body(error)
    raise refuse(400, "invalid_json", why)
