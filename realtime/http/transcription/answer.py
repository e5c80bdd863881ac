"""Answers with a transcript: as JSON, as text, as subtitles, or as server-sent events."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, BinaryIO

from starlette.responses import JSONResponse, PlainTextResponse, Response

from pipelines.ports import Cascade
from pipelines.types import HeardWord, StageError
from realtime.audio.reading import UnreadableAudio
from realtime.audio.subtitles import Segment, write_srt, write_vtt
from realtime.http.outlet import ClientGone, Outlet
from realtime.http.reception import Refused, refuse, refuse_stage_error
from realtime.http.speech.refusal import error_in
from realtime.http.stopping import unless_stopped
from realtime.http.transcription.hearing import (
    HeardPiece,
    HearingOrder,
    OpenSound,
    hear_pieces,
    open_sound,
)
from realtime.protocol.json_text import compact

logger = logging.getLogger(__name__)

# Proxies that gather an answer before they pass it on would undo the streaming.
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
UNDETERMINED = "und"  # ISO 639-2: of audio in which nothing is said
TIME_DIGITS = 3  # milliseconds
MARKS = "\"'.,!?;:()[]{}…“”‘’«»¿¡。，！？、；："  # beside a word, which is told without them


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """format: OpenAI's `response_format`. granularities: what verbose JSON tells the times of."""

    format: str
    task: str
    granularities: frozenset[str] = frozenset({"segment"})
    is_streamed: bool = False


@dataclass(frozen=True, slots=True)
class _Result:
    pieces: Sequence[HeardPiece]
    seconds: float

    @property
    def text(self) -> str:
        return " ".join(piece.text for piece in self.pieces if piece.text)

    @property
    def language(self) -> str | None:
        return next((piece.language for piece in self.pieces if piece.text), None)

    @property
    def segments(self) -> list[Segment]:
        return [segment for piece in self.pieces for segment in piece.segments()]

    @property
    def words(self) -> list[HeardWord]:
        return [word for piece in self.pieces for word in piece.words]

    @property
    def usage(self) -> dict[str, Any]:
        return {"type": "duration", "seconds": _time(self.seconds)}


async def answer_transcription(
    cascade: Cascade, order: HearingOrder, form: AnswerForm, file: BinaryIO, outlet: Outlet
) -> None:
    """An error before the first event is an answer with its status; later, it is an event."""
    whole: Response | None = None
    try:
        async with unless_stopped(outlet.visit), open_sound(file) as opened:
            pieces = hear_pieces(cascade, order, opened.pieces)
            async with aclosing(pieces):
                if form.is_streamed:
                    await _stream(opened, pieces, outlet)
                else:
                    heard = [piece async for piece in pieces]
                    result = _Result(heard, opened.sound.seconds)
                    whole = _whole(order, form, result)
        if whole is not None:  # whoever reads it slowly is told nothing in the middle of it
            await outlet.answer(whole)
    except ClientGone:
        raise
    except Exception as error:
        refused = _refusal_of(error, order.request_id)
        if not outlet.has_begun:
            await outlet.answer(refused.response)
        else:
            await outlet.write(_event({"type": "error", "error": error_in(refused)}))
            await outlet.end()


async def _stream(opened: OpenSound, pieces: AsyncIterator[HeardPiece], outlet: Outlet) -> None:
    """The deltas, joined, are the text at the end."""
    text = ""
    async for piece in pieces:
        if not outlet.has_begun:
            await outlet.begin("text/event-stream", STREAM_HEADERS)
        if piece.text:
            delta = f" {piece.text}" if text else piece.text
            text += delta
            await outlet.write(_event({"type": "transcript.text.delta", "delta": delta}))
    if not outlet.has_begun:
        await outlet.begin("text/event-stream", STREAM_HEADERS)
    usage = _Result((), opened.sound.seconds).usage
    await outlet.write(_event({"type": "transcript.text.done", "text": text, "usage": usage}))
    await outlet.end()


def _whole(order: HearingOrder, form: AnswerForm, result: _Result) -> Response:
    match form.format:
        case "text":
            return PlainTextResponse(f"{result.text}\n")
        case "srt":
            return Response("".join(write_srt(result.segments)), media_type="application/x-subrip")
        case "vtt":
            return Response("".join(write_vtt(result.segments)), media_type="text/vtt")
        case "verbose_json":
            return JSONResponse(_verbose(order, form, result))
        case _:
            return JSONResponse({"text": result.text, "usage": result.usage})


def _verbose(order: HearingOrder, form: AnswerForm, result: _Result) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "task": form.task,
        "language": result.language or order.language or UNDETERMINED,
        "duration": _time(result.seconds),
        "text": result.text,
        "usage": result.usage,
    }
    if "segment" in form.granularities:
        answer["segments"] = [
            {
                "id": number,
                "start": _time(segment.start_s),
                "end": _time(segment.end_s),
                "text": segment.text,
            }
            for number, segment in enumerate(result.segments)
        ]
    if "word" in form.granularities:
        if result.text and not result.words:
            raise refuse(
                400,
                "words_unsupported",
                "Invalid 'timestamp_granularities': the recogniser of this server does not tell "
                "when words are said. Ask for 'segment' alone.",
                "timestamp_granularities",
            )
        answer["words"] = [
            {
                "word": word.text.strip(MARKS) or word.text,
                "start": _time(word.start_s),
                "end": _time(word.end_s),
            }
            for word in result.words
        ]
    return answer


def _refusal_of(error: Exception, request_id: str) -> Refused:
    match error:
        case Refused():
            return error
        case UnreadableAudio():
            said = str(error)
            why = f"Invalid 'file': {said[:1].lower()}{said[1:]}"
            return refuse(400, "invalid_audio", why, "file")
        case StageError():
            return refuse_stage_error(error)
        case _:
            logger.error("transcription %s failed", request_id, exc_info=error)
            why = "The file could not be transcribed, through a fault of the server's."
            return refuse(500, "transcription_failed", why)


def _event(fields: dict[str, Any]) -> bytes:
    return f"data: {compact(fields)}\n\n".encode()


def _time(seconds: float) -> float:
    return round(seconds, TIME_DIGITS)
