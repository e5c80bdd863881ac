"""Request bodies as they come, bounded in size and in how slowly they may come.

A body must have come at `SLOWEST_BYTES_PER_S` or faster at every moment, but for a grace: whoever
sends a byte now and then holds no place for long. Only the time that the client is waited for
counts: a server that is slow to write an upload down blames nobody for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from realtime.http.reception import Refused, refuse

SLOWEST_BYTES_PER_S = 8_000  # 64 kbit/s, below any line that voices are sent over
GRACE_S = 10.0  # for the first bytes, and for pauses before much has come
LONGEST_PAUSE_S = 20.0  # however much has come: a line that is lost and found again
LONGEST_DIGITS = 18  # of a length that is worth reading


async def receive(
    request: Request,
    largest_bytes: int,
    longest_s: float,
    *,
    too_large: str,
    param: str | None = None,
) -> AsyncGenerator[bytes]:
    """The body, in pieces. longest_s: for all of it. too_large: the message of a 413. param: the
    field that a refusal names.

    Close it (`contextlib.aclosing`). Raises Refused: 408, 413, and where the client has gone, 400.
    """
    refused = refuse(413, "request_too_large", too_large, param)
    if _announces_more(request, largest_bytes):
        raise refused
    clock = asyncio.get_running_loop()
    taken_bytes, waited_s = 0, 0.0
    async with aclosing(request.stream()) as stream:
        while True:
            earned_s = min(longest_s, GRACE_S + taken_bytes / SLOWEST_BYTES_PER_S)
            since_s = clock.time()
            try:
                async with asyncio.timeout_at(since_s + min(LONGEST_PAUSE_S, earned_s - waited_s)):
                    chunk = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError:
                waited_s += clock.time() - since_s
                raise _too_slow(taken_bytes, waited_s, longest_s, param) from None
            except ClientDisconnect:
                raise Refused(Response(status_code=400)) from None  # nobody reads it
            waited_s += clock.time() - since_s
            taken_bytes += len(chunk)
            if taken_bytes > largest_bytes:
                raise refused
            yield chunk


def _announces_more(request: Request, largest_bytes: int) -> bool:
    """What is sent without a length is counted."""
    announced = request.headers.get("content-length", "")
    if not (announced.isascii() and announced.isdigit()):
        return False
    return len(announced) > LONGEST_DIGITS or int(announced) > largest_bytes


def _too_slow(taken_bytes: int, waited_s: float, longest_s: float, param: str | None) -> Refused:
    begin = f"Invalid '{param}': the upload" if param else "The request body"
    return refuse(
        408,
        "request_timeout",
        f"{begin} came too slowly: {taken_bytes} bytes within {waited_s:.0f} s. It must come at "
        f"{SLOWEST_BYTES_PER_S} bytes per second or faster after the first {GRACE_S:g} s, without "
        f"a pause of {LONGEST_PAUSE_S:g} s, and be whole within {longest_s:g} s.",
        param,
    )
