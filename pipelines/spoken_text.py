"""A text that is spoken while somebody pushes it, with no reply around it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from pipelines.ports import Speaker
from pipelines.runtime.loop_stage import LoopStage, LoopStream
from pipelines.runtime.ticket import Aborted
from pipelines.speech import UNSAID_LIMIT_CHARS, Speech, Voice, hand_over, unspeakable_rest
from pipelines.types import SpeakRequest, SpeechDelta, StageError, Urgency
from pipelines.voicing import Voicing

READ_CHARS = 200  # of a push are read at once: a few milliseconds of the loop, at the very worst 20
UNREAD_LIMIT_PUSHES = 1_000  # that wait to be read, when whoever pushes lets nobody else run

Push = str | None  # None: a flush
SpeechStage = LoopStage["SpokenText", Push, SpeechDelta]


class SpokenText:
    """One request (`pipelines.ports.SpeechStream`), and what the stage of speeches runs for it.

    The text is cut into what is worth speaking as it comes, wherever the pushes are split, and a
    writer that pauses for `pause_ms` has its whole words spoken already.

    `push` waits while `UNSAID_LIMIT_CHARS` are ahead of the voice, so somebody reads meanwhile. A
    push of more than that is StageError `reply_too_long`, and changes nothing.
    """

    def __init__(
        self, stage: SpeechStage, speaker: Speaker, request: SpeakRequest, pause_ms: int
    ) -> None:
        self._speaker = speaker
        self._request = request
        self._speech = Speech(pause_ms)
        self._order = asyncio.Lock()  # a flush keeps its place behind a push that waits
        self._room = asyncio.Event()
        self._unread_pushes = 0
        self._unread_chars = 0
        self._pushed_chars = 0
        self._last: SpeechDelta | None = None
        self._stream = stage.open(self)
        self._stream.ticket.on_abort(self._room.set)

    @property
    def request_id(self) -> str:
        return self._request.request_id

    @property
    def urgency(self) -> Urgency:
        return self._request.urgency

    # ---- the owner's side --------------------------------------------------------------------

    async def push(self, item: str) -> None:
        if len(item) > UNSAID_LIMIT_CHARS:
            raise _too_long(len(item))
        async with self._order:
            while item:
                # Where it is split makes no difference to what is heard.
                fits = item[: await self._wait_for_room()]
                if not fits:
                    return
                item = item[len(fits) :]
                self._unread_pushes += 1
                self._unread_chars += len(fits)
                await self._stream.push(fits)

    async def flush(self) -> None:
        async with self._order:
            if await self._wait_for_room():
                self._unread_pushes += 1
                await self._stream.push(None)

    async def finish(self) -> None:
        async with self._order:
            await self._stream.finish()

    def __aiter__(self) -> AsyncIterator[SpeechDelta]:
        return aiter(self._stream)

    def abort(self) -> None:
        self._stream.abort()

    def hurry(self, urgency: Urgency) -> None:
        self._stream.hurry(urgency)

    async def _wait_for_room(self) -> int:
        """How many characters may come; 0 once nothing is taken any more."""
        while not (self._stream.is_reaped or self._stream.ticket.aborted):
            room = UNSAID_LIMIT_CHARS - self._unread_chars - self._speech.unsaid_chars
            if room > 0 and self._unread_pushes < UNREAD_LIMIT_PUSHES:
                return room
            self._room.clear()
            await self._room.wait()
        return 0

    # ---- the stage's side --------------------------------------------------------------------

    async def run(self, stream: LoopStream[Push, SpeechDelta]) -> None:
        """Raises StageError where the voice fails."""
        voice = Voicing(self._speaker, stream.ticket, self._speak_request)
        failure: StageError | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                jobs = [
                    tasks.create_task(self._read(stream)),
                    tasks.create_task(self._feed(voice)),
                ]
                await self._speak(voice, stream)
                # A voice that ends before its text, as it was told to, says no more.
                for job in jobs:
                    job.cancel()
        except* Aborted:
            pass  # one of them ran between the abort and its cancellation
        except* StageError as group:
            failure = _first(group)
        finally:
            voice.abort()
            self._room.set()
        stream.ticket.check()
        if failure is not None:
            raise failure

    async def _read(self, stream: LoopStream[Push, SpeechDelta]) -> None:
        async for text in stream.inputs():
            self._unread_pushes -= 1
            if text is None:
                self._speech.flush()
            else:
                await self._read_text(text)
            self._room.set()
        self._speech.end()

    async def _read_text(self, text: str) -> None:
        for start in range(0, len(text), READ_CHARS):
            part = text[start : start + READ_CHARS]
            self._speech.write(part)
            self._unread_chars -= len(part)
            self._pushed_chars += len(part)
            await asyncio.sleep(0)  # others have their turn on the loop

    async def _feed(self, voice: Voice) -> None:
        await self._speech.feed(voice)
        await self._speech.feed_rest(voice)
        await voice.finish()

    async def _speak(self, voice: Voice, stream: LoopStream[Push, SpeechDelta]) -> None:
        async for delta in voice:
            self._last = self._speech.place(delta)
            await hand_over(stream, self._last)
            self._room.set()
        rest = unspeakable_rest(self._last, self._pushed_chars)
        if rest is not None:
            await stream.emit(rest)

    def _speak_request(self) -> SpeakRequest:
        return replace(self._request, urgency=self._stream.ticket.urgency)


def _first(group: BaseExceptionGroup[StageError]) -> StageError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, StageError)
    return error


def _too_long(chars: int) -> StageError:
    return StageError(
        "reply_too_long",
        f"{chars:,} characters came at once, and at most {UNSAID_LIMIT_CHARS:,} may be ahead of "
        "the voice: send the text in smaller pieces.",
    )
