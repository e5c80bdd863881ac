"""One client on the socket of speech, from its first message to its last sound.

Four tasks: one reads what the client writes, one speaks it, request after request, one sees whether
anything happens at all, and one whether the server stops: then the request that sounds may be
finished, and nothing else is begun. None of them outlives the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass

from pipelines.ports import Cascade
from realtime.http.reception import Refused
from realtime.http.speech_socket.request import CANCELLED, COMPLETED, FAILED, SpokenRequest
from realtime.http.speech_socket.schema import (
    Append,
    Cancel,
    Done,
    Flush,
    SessionConfig,
    read_message,
)
from realtime.http.speech_socket.script import Mark, Script
from realtime.http.speech_socket.setup import Setup, SetupDesk, problem_of
from realtime.http.speech_socket.wire import (
    CLOSE_FAULT,
    CLOSE_GOING_AWAY,
    CLOSE_POLICY,
    TOO_SLOW,
    ClientGone,
    Farewell,
    SpeechWire,
)
from realtime.http.stopping import CODE
from realtime.http.visits import LAST_WORD_S, TimeIsUp, Visit
from realtime.protocol.problems import Problem
from realtime.session.identifiers import Identifiers

log = logging.getLogger(__name__)

READ_INLINE_CHARACTERS = 128 * 2**10  # below that a thread costs more than the reading

TOO_LATE = Problem(
    "config_too_late",
    "A request sounds as it began: send 'session.config' before its first 'input.append', or after "
    "'input.done' or 'input.cancel'.",
    "type",
)
FAULT = Farewell(
    CLOSE_FAULT,
    "a fault of the server",
    Problem("server_error", "The server has failed here. Its log has the cause.", None),
)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client may keep the socket waiting.

    first_s: with its first message. idle_s: without a frame either way; a language model behind it
    may think for long. unread_s: with reading the next frame, while the voice rests and keeps its
    slot. late_s: with reading on when that is over, and no voice is held any more.
    """

    first_s: float = 10.0
    idle_s: float = 300.0
    unread_s: float = 30.0
    late_s: float = 60.0


USUAL = Patience()


class SpeechSession:
    """config: how it begins, as the address has it."""

    def __init__(
        self,
        wire: SpeechWire,
        cascade: Cascade,
        desk: SetupDesk,
        config: SessionConfig,
        identifiers: Identifiers,
        patience: Patience,
        visit: Visit,
    ) -> None:
        self._wire = wire
        self._cascade = cascade
        self._desk = desk
        self._config = config
        self._identifiers = identifiers
        self._patience = patience
        self._visit = visit
        self._script = Script()
        self._request: SpokenRequest | None = None
        self._has_begun = False  # the client has said something

    async def run(self) -> None:
        """Until the client has gone or was closed. Whatever happens, nothing stays on a stage."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._setup = await self._set_up()
                id_ = self._identifiers.make("sess")
                await self._wire.tell("session.created", id=id_, config=self._setup.view)
                tasks.create_task(self._watch(), name="speech watch")
                tasks.create_task(self._heed_stop(), name="speech stop")
                await self._read(tasks)
        except* ClientGone:
            self._wire.release()
        except* Farewell as farewells:
            await self._part(_first(farewells))
        except* Exception:
            log.exception("a socket of speech failed unexpectedly")
            await self._wire.part(FAULT)

    async def _part(self, farewell: Farewell) -> None:
        is_too_slow = farewell.problem is not None and farewell.problem.code == TOO_SLOW
        if is_too_slow:
            log.warning("a request for speech is aborted: %s", farewell.reason)
        with contextlib.suppress(TimeIsUp):
            async with self._visit.limit(None, LAST_WORD_S):
                if is_too_slow or farewell.code == CLOSE_GOING_AWAY:
                    await self._wire.part(farewell, self._tell_unfinished)
                else:
                    await self._wire.part(farewell)

    async def _set_up(self) -> Setup:
        try:
            return await self._desk.take(self._config)
        except Refused as refused:
            problem = problem_of(refused)
            raise Farewell(CLOSE_POLICY, problem.message, problem) from None

    # ---- reading -----------------------------------------------------------------------------

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        speaking = tasks.create_task(self._speak(), name="speech")
        while True:
            frame = await self._wire.receive()
            self._has_begun = True
            if len(frame) > READ_INLINE_CHARACTERS:
                message = await asyncio.to_thread(read_message, frame)
            else:
                message = read_message(frame)
            if isinstance(message, Cancel):
                await self._silence(speaking)
                speaking = tasks.create_task(self._speak(), name="speech")
            else:
                await self._take(message)

    async def _take(self, message: Problem | SessionConfig | Append | Flush | Done) -> None:
        match message:
            case Append():
                await self._script.write(message.text)
            case Flush():
                await self._script.flush()
            case Done():
                await self._script.end()
            case SessionConfig():
                await self._configure(message)
            case Problem():
                await self._wire.tell_problem(message)

    async def _configure(self, config: SessionConfig) -> None:
        if self._script.is_writing:
            await self._wire.tell_problem(TOO_LATE)
            return
        try:
            setup = await self._desk.take(config)
        except Refused as refused:
            await self._wire.tell_problem(problem_of(refused))
            return
        await self._script.configure(setup)
        await self._wire.tell("session.updated", config=setup.view)

    # ---- speaking ----------------------------------------------------------------------------

    async def _speak(self) -> None:
        """One request after another."""
        while True:
            match await self._script.take():
                case Setup() as setup:
                    self._setup = setup
                case Mark.FLUSH:
                    pass  # of a text that was spoken to its last word
                case Mark.DONE:
                    await self._begin().tell_done(COMPLETED)  # there was nothing to say
                case str() as text:
                    request_id = self._identifiers.next_request("speech")
                    await self._begin().run(self._cascade, request_id, text)
            self._rest()

    def _begin(self) -> SpokenRequest:
        self._request = SpokenRequest(self._setup, self._wire, self._script)
        return self._request

    async def _silence(self, speaking: asyncio.Task[None]) -> None:
        """End the request that sounds or waits to, and tell of it; if there is none, nothing."""
        request = self._request
        if request is None and self._script.has_text:
            request = self._begin()
        self._script.clear()
        if request is not None:
            request.abort()
        speaking.cancel()
        await asyncio.wait({speaking})
        if request is not None:
            await request.tell_done(CANCELLED)
        self._rest()

    def _rest(self) -> None:
        """Between two requests. Raises Farewell on a server that stops."""
        self._request = None
        if self._visit.stopping.is_set():
            raise _stopped()

    async def _tell_unfinished(self) -> None:
        """To a client that is sent away in the middle of a request: that this has failed."""
        if self._request is None and self._script.has_text:
            self._begin()
        if self._request is not None:
            await self._request.tell_done(FAILED)

    # ---- watching ----------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Raises Farewell when nothing has happened for too long."""
        now_s = asyncio.get_running_loop().time
        while True:
            limit_s = self._patience.idle_s if self._has_begun else self._patience.first_s
            left_s = self._wire.active_s + limit_s - now_s()
            if left_s <= 0:
                raise self._idle(limit_s)
            await asyncio.sleep(left_s)

    async def _heed_stop(self) -> None:
        """Raises Farewell when the server stops: at once if nothing is to be spoken."""
        await self._visit.stopping.wait()
        if self._request is not None or self._script.has_text:
            await self._visit.over.wait()  # unless `_rest` ends it before
        raise _stopped()

    def _idle(self, limit_s: float) -> Farewell:
        if self._has_begun:
            why = f"Nothing was written or spoken for {limit_s:g} s. Connect again to go on."
            return Farewell(CLOSE_POLICY, "idle", Problem("idle_timeout", why, None))
        why = (
            f"Nothing came within {limit_s:g} s. Send 'session.config' or 'input.append' once "
            "connected."
        )
        return Farewell(CLOSE_POLICY, "nothing came", Problem("config_timeout", why, None))


def _stopped() -> Farewell:
    why = "The server is shutting down. Connect again in a moment."
    return Farewell(CLOSE_GOING_AWAY, why, Problem(CODE, why, None), LAST_WORD_S)


def _first(farewells: ExceptionGroup[Farewell]) -> Farewell:
    for error in farewells.exceptions:
        return error if isinstance(error, Farewell) else _first(error)
    raise AssertionError("a group is never empty")
