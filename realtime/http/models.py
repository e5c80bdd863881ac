"""`GET /v1/models`: what may stand under `model` in requests, as OpenAI lists it."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from realtime.access.denial import Denied
from realtime.access.gate import Gate
from realtime.access.keys import find_key
from realtime.http.answers import denial_response, error_response
from realtime.http.description import failures

# The server has one voice and one recogniser, whichever are configured, and serves them under
# these names: a program that was written for one configuration runs with any other.
SPEECH_MODEL = "parley-tts"
TRANSCRIPTION_MODEL = "parley-asr"
MAX_SHOWN_CHARACTERS = 80  # of a wrong id


def create_model_routes(gate: Gate, model: Callable[[], str]) -> APIRouter:
    """model: the language model's name, which comes first."""
    router = APIRouter()

    def names() -> list[str]:
        return list(dict.fromkeys((model(), SPEECH_MODEL, TRANSCRIPTION_MODEL)))

    @router.get("/v1/models", response_model=None, responses=failures(401, 403))
    async def models(request: Request) -> JSONResponse:
        """The language model, the speech model and the transcription model."""
        try:
            _admit(gate, request)
        except Denied as denied:
            return denial_response(denied)
        return JSONResponse({"object": "list", "data": [_entry(name) for name in names()]})

    # An id may have slashes, which clients escape or not.
    @router.get(
        "/v1/models/{model_id:path}", response_model=None, responses=failures(401, 403, 404)
    )
    async def one_model(request: Request, model_id: str) -> JSONResponse:
        """One of them; 404 for any other."""
        try:
            _admit(gate, request)
        except Denied as denied:
            return denial_response(denied)
        if model_id in names():
            return JSONResponse(_entry(model_id))
        why = (
            f"The model '{model_id[:MAX_SHOWN_CHARACTERS]}' does not exist here: "
            f"there are {', '.join(names())}."
        )
        return error_response(404, "model_not_found", why, param="model")

    return router


def _admit(gate: Gate, request: Request) -> None:
    gate.admit_reader(request.headers)
    gate.ring.admit_key(find_key(request.headers.get("authorization"), ()))


def _entry(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "parley"}
