"""`POST /v1/audio/speech` and `POST /v1/audio/speech/batch`: text to speech, without a session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from pipelines.types import VoiceSample
from realtime.http.intake import Intake, Work
from realtime.http.reception import Reception
from realtime.http.room import Room
from realtime.http.speech.answer import answer_speech
from realtime.http.speech.batch import answer_batch
from realtime.http.speech.body import read_json
from realtime.http.speech.description import batch_responses, speech_responses
from realtime.http.speech.order import OrderDesk
from realtime.http.speech.refusal import validated
from realtime.http.speech.schema import BatchBody, SpeechBody, body_of
from realtime.http.speech.sources import LastFetched, ReadSource, Sources

MOST_REQUESTS = 64  # at once: each may hold a recording of 30 MB, and waits for a voice
RETRY_AFTER_S = 2


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
    intake = Intake(reception, room)

    @router.post(
        "/v1/audio/speech",
        response_class=Response,  # of no media type of its own: `responses` tells them
        responses=speech_responses(),
        openapi_extra=body_of(SpeechBody),
    )
    async def speak(request: Request) -> Response:
        """Speak a text: as a sound file, sent while it is made, or as server-sent events."""

        async def read(request_id: str, _held: ExitStack) -> Work:
            body = validated(SpeechBody, await read_json(request))
            desk = OrderDesk(cascade, find, names, Sources(fetch, read_path))
            return partial(answer_speech, cascade, desk, body, request_id)

        return await intake.take(request, read)

    @router.post(
        "/v1/audio/speech/batch",
        response_class=Response,
        responses=batch_responses(),
        openapi_extra=body_of(BatchBody),
    )
    async def speak_batch(request: Request) -> Response:
        """Speak several texts: a line of JSON for each, as soon as it is made."""

        async def read(request_id: str, _held: ExitStack) -> Work:
            fields = await read_json(request)
            items = validated(BatchBody, fields).items
            desk = OrderDesk(cascade, find, names, Sources(LastFetched(fetch), read_path))
            return partial(answer_batch, cascade, desk, items, fields, request_id)

        return await intake.take(request, read)

    return router
