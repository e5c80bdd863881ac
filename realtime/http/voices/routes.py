"""`/v1/audio/voices`: the voices that there are, and voices of one's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from realtime.http.forms import Form, read_form
from realtime.http.lingering import Lingering
from realtime.http.reception import Reception, Refused, refuse
from realtime.http.stopping import unless_stopped
from realtime.http.voices.description import ADDED, DELETED, LISTED, SAMPLED, SHOWN, UPLOAD
from realtime.http.voices.index import refusing_broken_shelves
from realtime.voices.names import VoiceRefused, find_name
from realtime.voices.recording import FIELD, LARGEST_BYTES
from realtime.voices.records import VoiceRecord
from realtime.voices.shelf import VoiceShelf

MOST_UPLOADS = 4  # at once: each holds its file in memory
STATUS_OF = {"voice_exists": 409, "voice_name_taken": 409}  # of refusals that are not 400


def create_voice_routes(reception: Reception, shelf: VoiceShelf) -> APIRouter:
    router = APIRouter(prefix="/v1/audio/voices")
    desk = _Desk(reception, shelf)

    @router.get("", response_class=Response, responses=LISTED)
    async def list_voices(request: Request) -> Response:
        """The configured voices, the default first, and the uploaded ones."""
        return await _answer(desk.list, request)

    @router.get("/{name}", response_class=Response, responses=SHOWN)
    async def show_voice(name: str, request: Request) -> Response:
        """One voice."""
        return await _answer(lambda asked: desk.show(name, asked), request)

    @router.post("", response_class=Response, responses=ADDED, openapi_extra=UPLOAD)
    async def add_voice(request: Request) -> Response:
        """Keep a recording of 1 to 30 s, whose voice can be asked for by its name from then on."""
        return await _answer(desk.add, request)

    @router.delete("/{name}", response_class=Response, responses=DELETED)
    async def delete_voice(name: str, request: Request) -> Response:
        """Forget an uploaded voice and its recording."""
        return await _answer(lambda asked: desk.delete(name, asked), request)

    return router


class _Desk:
    """Each method answers one request; raises Refused and ShelfBroken."""

    def __init__(self, reception: Reception, shelf: VoiceShelf) -> None:
        self._reception = reception
        self._shelf = shelf
        self._uploads = 0

    async def list(self, request: Request) -> Response:
        self._reception.admit(request.headers)
        records = await asyncio.to_thread(self._shelf.list)
        voices = [_configured_view(name) for name in self._configured]
        voices += [self._view(entry) for entry in records if not self._own(entry.name)]
        can_copy = self._reception.cascade.copies_voices
        return JSONResponse({"object": "list", "data": voices, "can_copy": can_copy})

    async def show(self, name: str, request: Request) -> Response:
        self._reception.admit(request.headers)
        if (own := self._own(name)) is not None:
            return JSONResponse(_configured_view(own))
        record = await asyncio.to_thread(self._shelf.get, name)
        if record is None:
            raise _unknown(name)
        return JSONResponse(self._view(record) | {"consent": record.consent})

    async def add(self, request: Request) -> Response:
        with ExitStack() as held:
            return await self._add(request, held)

    async def _add(self, request: Request, held: ExitStack) -> Response:
        try:
            visit = held.enter_context(self._reception.visit(request.headers))
            self._check_copying()
            if self._uploads >= MOST_UPLOADS:
                why = "Too many voices are being uploaded at present; try again in a moment."
                raise refuse(429, "too_many_uploads", why, FIELD)
        except Refused as refused:
            raise Refused(Lingering(refused.response)) from refused
        self._uploads += 1
        try:
            async with unless_stopped(visit):
                form = await read_form(request, FIELD, LARGEST_BYTES)
            record = await asyncio.to_thread(self._keep, form)
        finally:
            self._uploads -= 1
        return JSONResponse(self._view(record) | {"consent": record.consent})

    async def delete(self, name: str, request: Request) -> Response:
        self._reception.admit(request.headers)
        if (own := self._own(name)) is not None:
            why = f"The voice '{own}' belongs to the server's configuration."
            raise refuse(400, "voice_not_deletable", why, "name")
        record = await asyncio.to_thread(self._shelf.delete, name)
        if record is None:
            raise _unknown(name)
        return JSONResponse({"object": "audio.voice.deleted", "id": record.name, "deleted": True})

    def _keep(self, form: Form) -> VoiceRecord:
        if (wanted := form.texts.get("type", SAMPLED)) != SAMPLED:
            why = f"Invalid 'type': voices are made of recordings here ('{SAMPLED}'), not by "
            raise refuse(400, "invalid_value", f"{why}'{wanted[:80]}'.", "type")
        name = _required(form, "name")
        if (own := self._own(name)) is not None:
            why = f"Invalid 'name': this server has a voice '{own}' of its own."
            raise refuse(409, "voice_name_taken", why, "name")
        consent = form.texts.get("consent", "")
        data = form.files.get(FIELD, form.files.get("file"))
        if data is None:
            is_text = FIELD in form.texts or "file" in form.texts
            why = "it is no file (its part needs a filename)." if is_text else "attach a recording."
            raise refuse(400, "missing_field", f"Missing '{FIELD}': {why}", FIELD)
        transcript = form.texts.get("transcript", form.texts.get("ref_text"))
        try:
            return self._shelf.add(name, data, transcript, consent)
        except VoiceRefused as refused:
            status = STATUS_OF.get(refused.code, 400)
            raise refuse(status, refused.code, refused.message, refused.field) from refused

    def _check_copying(self) -> None:
        if not self._reception.cascade.copies_voices:
            why = (
                "This server's voice cannot copy one from a recording; its own voices are "
                f"{', '.join(self._configured)}. To copy voices, use a server whose voice can "
                "(stages.speaker of kind higgs)."
            )
            raise refuse(400, "copying_unsupported", why, FIELD)

    def _view(self, record: VoiceRecord) -> dict[str, object]:
        """available: whether this server can speak with it."""
        return {
            "object": "audio.voice",
            "id": record.name,
            "name": record.name,
            "kind": "uploaded",
            "type": SAMPLED,
            "created_at": record.created_at_s,
            "duration_ms": record.duration_ms,
            "transcript": record.transcript,
            "available": self._reception.cascade.copies_voices,
        }

    def _own(self, name: str) -> str | None:
        """The configured voice that is meant."""
        return find_name(name, self._configured)

    @property
    def _configured(self) -> tuple[str, ...]:
        return self._reception.cascade.voices


async def _answer(method: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
    try:
        with refusing_broken_shelves():
            return await method(request)
    except Refused as refused:
        return refused.response


def _configured_view(name: str) -> dict[str, object]:
    return {
        "object": "audio.voice",
        "id": name,
        "name": name,
        "kind": "configured",
        "available": True,
    }


def _required(form: Form, name: str) -> str:
    if name not in form.texts:
        raise refuse(400, "missing_field", f"Missing '{name}'.", name)
    return form.texts[name]


def _unknown(name: str) -> Refused:
    why = f"There is no voice '{name[:80]}'; GET /v1/audio/voices lists those that there are."
    return refuse(404, "voice_not_found", why, "name")
