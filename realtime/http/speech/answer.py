"""Sends one speech: as bytes while it is made, as server-sent events, or as a whole file."""

from __future__ import annotations

import asyncio
import base64
import logging
from typing import Any

from pipelines.ports import Cascade
from pipelines.types import StageError
from realtime.audio.encoding import SPEECH_FORMATS
from realtime.http.outlet import ClientGone, Outlet
from realtime.http.reception import Refused, refuse
from realtime.http.speech.making import make_file, make_speech, open_file
from realtime.http.speech.order import OrderDesk, SpeechOrder
from realtime.http.speech.refusal import error_in
from realtime.http.speech.schema import SpeechBody
from realtime.http.stopping import unless_stopped
from realtime.protocol.json_text import compact

logger = logging.getLogger(__name__)

PIECE_BYTES = 256 * 1024  # of a whole file: what is sent, and held in memory, at once

# Proxies that gather an answer before they pass it on would undo the streaming.
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
PCM_HEADERS = {"X-Sample-Rate": "24000", "X-Channels": "1", "X-Bit-Depth": "16"}


async def answer_speech(
    cascade: Cascade, desk: OrderDesk, body: SpeechBody, request_id: str, outlet: Outlet
) -> None:
    """An error before the first byte is an answer with its status. Later, a stream of events ends
    with an `error` event, and plain bytes break off: nobody takes half a speech for a whole one."""
    is_events = False
    try:
        async with unless_stopped(outlet.visit):
            order = await desk.take(body, request_id)
            is_events = order.is_events
            await _deliver(cascade, order, outlet)
    except ClientGone:
        raise
    except Exception as error:
        refused = refusal_of(error, request_id)
        if not outlet.has_begun:
            await outlet.answer(refused.response)
        elif is_events:
            await outlet.write(_event({"type": "error", "error": error_in(refused)}))
            await outlet.end()
        else:
            logger.warning("speech %s broke off: %s", request_id, error_in(refused)["message"])


def refusal_of(error: Exception, request_id: str) -> Refused:
    """Any failure as an answer."""
    if isinstance(error, Refused):
        return error
    logger.error("speech %s failed", request_id, exc_info=error)
    return refuse(
        500, "speech_failed", "The speech could not be made, through a fault of the server's."
    )


async def _deliver(cascade: Cascade, order: SpeechOrder, outlet: Outlet) -> None:
    try:
        if order.is_events:
            await _send_events(cascade, order, outlet)
        elif order.is_whole:
            await _send_file(cascade, order, outlet)
        else:
            await _send_bytes(cascade, order, outlet)
    except StageError as error:
        raise order.blame(error) from error


async def _send_bytes(cascade: Cascade, order: SpeechOrder, outlet: Outlet) -> None:
    async def send(data: bytes) -> None:
        if not outlet.has_begun:
            await outlet.begin(_media_type(order), STREAM_HEADERS | _format_headers(order))
        await outlet.write(data)

    await make_speech(cascade, order, send)
    await outlet.end()


async def _send_events(cascade: Cascade, order: SpeechOrder, outlet: Outlet) -> None:
    async def send(data: bytes) -> None:
        if not outlet.has_begun:
            await outlet.begin("text/event-stream", STREAM_HEADERS)
        audio = base64.b64encode(data).decode()
        await outlet.write(_event({"type": "speech.audio.delta", "audio": audio}))

    made = await make_speech(cascade, order, send)
    await outlet.write(_event({"type": "speech.audio.done", "usage": made.usage}))
    await outlet.end()


async def _send_file(cascade: Cascade, order: SpeechOrder, outlet: Outlet) -> None:
    with open_file() as file:
        await make_file(cascade, order, file)
        headers = {"Content-Length": str(file.tell())}
        await asyncio.to_thread(file.seek, 0)
        await outlet.begin(_media_type(order), headers | _format_headers(order))
        while data := await asyncio.to_thread(file.read, PIECE_BYTES):
            await outlet.write(data)
        await outlet.end()


def _media_type(order: SpeechOrder) -> str:
    return SPEECH_FORMATS[order.format].media_type


def _format_headers(order: SpeechOrder) -> dict[str, str]:
    """What a reader of bytes without a header must know."""
    return PCM_HEADERS if order.format == "pcm" else {}


def _event(fields: dict[str, Any]) -> bytes:
    return f"data: {compact(fields)}\n\n".encode()
