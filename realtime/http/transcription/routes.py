"""`POST /v1/audio/transcriptions` and `/v1/audio/translations`: sound files to text."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from realtime.http.intake import Intake, Work
from realtime.http.reception import Reception
from realtime.http.room import Room
from realtime.http.speech.refusal import validated
from realtime.http.transcription.answer import AnswerForm, answer_transcription
from realtime.http.transcription.description import transcription_responses
from realtime.http.transcription.form import Upload, read_upload
from realtime.http.transcription.hearing import HearingOrder
from realtime.http.transcription.schema import (
    TranscriptionFields,
    TranslationFields,
    upload_of,
)

MOST_REQUESTS = 16  # at once: each may have a file of 1 GB on the disk
RETRY_AFTER_S = 10

ReadFields = Callable[[dict[str, Any], str], tuple[HearingOrder, AnswerForm]]


def create_transcription_routes(reception: Reception) -> APIRouter:
    router = APIRouter()
    desk = _Desk(reception)

    @router.post(
        "/v1/audio/transcriptions",
        response_class=Response,  # of no media type of its own: `responses` tells them
        responses=transcription_responses(may_stream=True),
        openapi_extra=upload_of(TranscriptionFields),
    )
    async def transcribe(request: Request) -> Response:
        """Write down what is said in a sound file: as text, with times, or as subtitles."""

        def read(fields: dict[str, Any], request_id: str) -> tuple[HearingOrder, AnswerForm]:
            wanted = validated(TranscriptionFields, fields)
            order = HearingOrder(
                request_id,
                language=wanted.spoken_language,
                prompt=wanted.likely_words,
                wants_words=wanted.is_timed,
            )
            granularities = frozenset(wanted.timestamp_granularities) or frozenset({"segment"})
            form = AnswerForm(
                wanted.response_format, "transcribe", granularities, bool(wanted.stream)
            )
            return order, form

        return await desk.take(request, read)

    @router.post(
        "/v1/audio/translations",
        response_class=Response,
        responses=transcription_responses(may_stream=False),
        openapi_extra=upload_of(TranslationFields),
    )
    async def translate(request: Request) -> Response:
        """Write down in English what is said in a sound file in another language."""

        def read(fields: dict[str, Any], request_id: str) -> tuple[HearingOrder, AnswerForm]:
            wanted = validated(TranslationFields, fields)
            order = HearingOrder(
                request_id, prompt=wanted.prompt, wants_words=wanted.is_timed, translates=True
            )
            return order, AnswerForm(wanted.response_format, "translate")

        return await desk.take(request, read)

    return router


class _Desk:
    """Takes requests, so many at once."""

    def __init__(self, reception: Reception) -> None:
        self._cascade = reception.cascade
        room = Room(MOST_REQUESTS, "files are being transcribed", RETRY_AFTER_S)
        self._intake = Intake(reception, room)

    async def take(self, request: Request, read: ReadFields) -> Response:
        async def read_whole(request_id: str, held: ExitStack) -> Work:
            upload: Upload = await read_upload(request)
            file = upload.file.file
            held.callback(file.close)
            order, form = read(upload.fields, request_id)
            return partial(answer_transcription, self._cascade, order, form, file)

        return await self._intake.take(request, read_whole)
