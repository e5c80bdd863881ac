"""`POST /v1/audio/speech` and `POST /v1/audio/speech/batch`: text to speech, without a session."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import Response

from pipelines.types import VoiceSample
from realtime.http.faults import first_fault
from realtime.http.lingering import refusal_with
from realtime.http.outlet import Exchange
from realtime.http.reception import Reception, Refused
from realtime.http.room import Room
from realtime.http.speech.answer import answer_speech
from realtime.http.speech.batch import answer_batch
from realtime.http.speech.body import read_json
from realtime.http.speech.description import batch_responses, speech_responses
from realtime.http.speech.order import OrderDesk
from realtime.http.speech.refusal import refuse_problem
from realtime.http.speech.schema import BatchBody, SpeechBody, SpeechFields, body_of
from realtime.http.speech.sources import LastFetched, ReadSource, Sources
from realtime.http.stopping import unless_stopped

MOST_REQUESTS = 64  # at once: each may hold a recording of 30 MB, and waits for a voice
RETRY_AFTER_S = 2
ID_BYTES = 12  # never the same twice

Body = TypeVar("Body", bound=SpeechFields)


def create_speech_routes(
    reception: Reception,
    find: Callable[[str], VoiceSample | None],
    names: Callable[[], list[str]],
    fetch: ReadSource,
    read_path: ReadSource,
) -> APIRouter:
    """find, names: of uploaded voices; they may block. fetch: what is at a URL. read_path: what is
    in a file of the server's."""
    router = APIRouter()
    cascade = reception.cascade
    room = Room(MOST_REQUESTS, "speech requests are being answered", RETRY_AFTER_S)

    @router.post(
        "/v1/audio/speech",
        response_class=Response,  # of no media type of its own: `responses` tells them
        responses=speech_responses(),
        openapi_extra=body_of(SpeechBody),
    )
    async def speak(request: Request) -> Response:
        """Speak a text: as a sound file, sent while it is made, or as server-sent events."""
        request_id, headers = _identify()
        with ExitStack() as held:
            try:
                visit = held.enter_context(reception.visit(request.headers))
                held.enter_context(room.place())
                async with unless_stopped(visit):
                    body = _validated(SpeechBody, await read_json(request))
            except Refused as refused:
                return refusal_with(headers, refused.response)
            desk = OrderDesk(cascade, find, names, Sources(fetch, read_path))
            work = partial(answer_speech, cascade, desk, body, request_id)
            return Exchange(work, headers, held.pop_all(), visit)

    @router.post(
        "/v1/audio/speech/batch",
        response_class=Response,
        responses=batch_responses(),
        openapi_extra=body_of(BatchBody),
    )
    async def speak_batch(request: Request) -> Response:
        """Speak several texts: a line of JSON for each, as soon as it is made."""
        request_id, headers = _identify()
        with ExitStack() as held:
            try:
                visit = held.enter_context(reception.visit(request.headers))
                held.enter_context(room.place())
                async with unless_stopped(visit):
                    fields = await read_json(request)
                items = _validated(BatchBody, fields).items
            except Refused as refused:
                return refusal_with(headers, refused.response)
            desk = OrderDesk(cascade, find, names, Sources(LastFetched(fetch), read_path))
            work = partial(answer_batch, cascade, desk, items, fields, request_id)
            return Exchange(work, headers, held.pop_all(), visit)

    return router


def _identify() -> tuple[str, dict[str, str]]:
    """A request's id, and the header that tells it to the client, as OpenAI's SDKs show it."""
    request_id = f"req_{secrets.token_hex(ID_BYTES)}"
    return request_id, {"x-request-id": request_id}


def _validated(model: type[Body], fields: dict[str, Any]) -> Body:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise refuse_problem(first_fault(error, model)) from None
