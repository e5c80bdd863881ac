"""`POST /v1/audio/transcriptions` and `/v1/audio/translations`: sound files to text."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import Response

from realtime.http.faults import first_fault
from realtime.http.lingering import refusal_with
from realtime.http.outlet import Exchange
from realtime.http.reception import Reception, Refused
from realtime.http.room import Room
from realtime.http.speech.refusal import refuse_problem
from realtime.http.stopping import unless_stopped
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
ID_BYTES = 12  # never the same twice

ReadFields = Callable[[dict[str, Any], str], tuple[HearingOrder, AnswerForm]]
Fields = TypeVar("Fields", bound=TranslationFields)


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
            wanted = _validated(TranscriptionFields, fields)
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
            wanted = _validated(TranslationFields, fields)
            order = HearingOrder(
                request_id, prompt=wanted.prompt, wants_words=wanted.is_timed, translates=True
            )
            return order, AnswerForm(wanted.response_format, "translate")

        return await desk.take(request, read)

    return router


class _Desk:
    """Reads requests, so many at once."""

    def __init__(self, reception: Reception) -> None:
        self._reception = reception
        self._room = Room(MOST_REQUESTS, "files are being transcribed", RETRY_AFTER_S)

    async def take(self, request: Request, read: ReadFields) -> Response:
        request_id = f"req_{secrets.token_hex(ID_BYTES)}"
        headers = {"x-request-id": request_id}
        with ExitStack() as held:
            try:
                visit = held.enter_context(self._reception.visit(request.headers))
                held.enter_context(self._room.place())
                async with unless_stopped(visit):
                    upload: Upload = await read_upload(request)
                held.callback(upload.file.file.close)
                order, form = read(upload.fields, request_id)
            except Refused as refused:
                return refusal_with(headers, refused.response)
            file = upload.file.file
            work = partial(answer_transcription, self._reception.cascade, order, form, file)
            return Exchange(work, headers, held.pop_all(), visit)


def _validated(model: type[Fields], fields: dict[str, Any]) -> Fields:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise refuse_problem(first_fault(error, model)) from None
