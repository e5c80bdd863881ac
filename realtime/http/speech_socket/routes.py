"""`WS /v1/audio/speech/stream`: text in as it is written, speech out as it is made.

A request is text from its first `input.append` to its `input.done`: one request to the voice, which
so has one prosody. A socket has any number of them, one after the other; what is written of the
next one while the last still sounds waits for it. Each ends with one `audio.done`, whose status is
completed, cancelled, failed (after an `error`) or incomplete; after the latter two what still comes
of its text is dropped, up to its `input.done`. A text in which nothing can be spoken has failed;
one of no character at all is completed. `input.cancel` ends the request that sounds, and drops all
that waits; of nothing, it does nothing.

    in:  session.config, input.append, input.flush, input.cancel, input.done
    out: session.created, session.updated, audio.start, audio.words, audio in binary frames,
         audio.done, error

The address may set what `session.config` does (`?voice=anna&speed=1.2`); what it does not know or
takes no such value of is told, and ends the connection, since nobody would hear what was meant.

`audio.words` has one entry for each word: `text_end` counts the code points of the request's text.
Text that comes faster than it can be spoken waits, and then is not read. A client that reads slowly
has the voice rest; after half a minute without a frame that is read its request is aborted, and it
has a minute more to read what was sent, the error `client_too_slow` and the close code 1008.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from fastapi import APIRouter
from starlette.websockets import WebSocket, WebSocketDisconnect

from pipelines.types import VoiceSample
from realtime.access.denial import Denied
from realtime.http.answers import denial_response
from realtime.http.reception import Reception
from realtime.http.speech_socket.schema import read_query
from realtime.http.speech_socket.session import USUAL, Patience, SpeechSession
from realtime.http.speech_socket.setup import SetupDesk
from realtime.http.speech_socket.wire import (
    CLOSE_POLICY,
    CLOSE_TRY_LATER,
    Farewell,
    SpeechWire,
)
from realtime.protocol.problems import Problem
from realtime.runtime.refusals import RefusalLog
from realtime.session.identifiers import Identifiers

PATH = "/v1/audio/speech/stream"
SUBPROTOCOLS = ("speech", "realtime")  # browsers fail the handshake if an offered one is not chosen
MOST_SOCKETS = 256  # each may hold a megabyte of text, and waits for a voice
SEED_BITS = 63  # of a socket's ids: two never share one


def create_speech_socket(
    reception: Reception,
    find: Callable[[str], VoiceSample | None],
    names: Callable[[], list[str]],
    patience: Patience = USUAL,
) -> APIRouter:
    """The route must stand before the one that answers WebSockets everywhere else.

    find, names: of uploaded voices; called in threads.
    """
    router = APIRouter()
    desk = SetupDesk(reception.cascade, find, names)
    sessions = set[SpeechSession]()
    refusals = RefusalLog(time.monotonic, "a socket of speech")

    @router.websocket(PATH)
    async def speech(socket: WebSocket) -> None:
        """Speak text while it is being written."""
        offered: list[str] = socket.scope.get("subprotocols", [])
        try:
            try:
                reception.gate.admit_key(socket.headers, offered)
            except Denied as denied:
                refusals.tell(denied.code, denied.message)
                await socket.send_denial_response(denial_response(denied))
                return
            await socket.accept(next((name for name in SUBPROTOCOLS if name in offered), None))
        except (WebSocketDisconnect, OSError):
            return  # the client left before anything began
        wire = SpeechWire(socket, patience.unread_s, patience.late_s)
        identifiers = Identifiers(secrets.randbits(SEED_BITS))
        problem = _refusal(reception, len(sessions))
        if problem is not None:
            refusals.tell(problem.code, problem.message)
            # After the upgrade, for a browser shows its page no answer before it.
            await wire.part(Farewell(CLOSE_TRY_LATER, problem.message, problem))
            return
        config = read_query(socket.query_params)
        if isinstance(config, Problem):
            await wire.part(Farewell(CLOSE_POLICY, config.message, config))
            return
        with reception.visits.enter() as visit:
            session = SpeechSession(
                wire, reception.cascade, desk, config, identifiers, patience, visit
            )
            sessions.add(session)
            try:
                await session.run()
            finally:
                sessions.discard(session)

    return router


def _refusal(reception: Reception, sockets: int) -> Problem | None:
    """Why nothing can be spoken for one more client at present."""
    is_ready = reception.readiness.is_ready
    why = reception.failure() if is_ready else reception.readiness.refusal()
    if why is not None:
        return Problem("server_not_ready", why, None)
    if sockets < MOST_SOCKETS:
        return None
    why = f"{MOST_SOCKETS} sockets of speech are open, which is all that this server takes at once."
    return Problem("too_many_requests", f"{why} Try again in a moment.", None)
