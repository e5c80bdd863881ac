"""The voice of one reply, which outlives the loss of its slot if the reply is wanted by then.

A stage may end a draft to answer somebody else. Where the draft has become a reply in that very
moment, what was not said yet is said by a new request, from the start of the pushed text that the
first was in the middle of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from pipelines.ports import Speaker, Stream
from pipelines.runtime.failures import DRAFT_EVICTED
from pipelines.runtime.ticket import Ticket
from pipelines.types import SpeakRequest, SpeechDelta, StageError, Urgency


class Voicing:
    """A stream (`pipelines.ports.Stream`) of speech.

    ticket: the reply's, which tells whether it is a draft, and whose fate every request shares.
    request: makes the request for the speaker, of the urgency that the reply has.
    """

    def __init__(
        self, speaker: Speaker, ticket: Ticket, request: Callable[[], SpeakRequest]
    ) -> None:
        self._speaker = speaker
        self._ticket = ticket
        self._request = request
        self._unsaid: deque[str] = deque()  # pushed and not said to the end
        self._over = 0  # characters of what was said to the end
        self._is_finished = False
        self._start = 0  # characters pushed before those of the current request
        self._stream = self._open()

    async def push(self, item: str) -> None:
        self._unsaid.append(item)
        await self._stream.push(item)

    async def finish(self) -> None:
        self._is_finished = True
        await self._stream.finish()

    def __aiter__(self) -> AsyncIterator[SpeechDelta]:
        return self

    async def __anext__(self) -> SpeechDelta:
        while True:
            try:
                delta = await anext(aiter(self._stream))
            except StageError as error:
                if error.code != DRAFT_EVICTED or self._ticket.urgency is Urgency.DRAFT:
                    raise
                await self._begin_anew()
                continue
            if self._start:
                words = tuple(
                    replace(word, text_end=self._start + word.text_end) for word in delta.words
                )
                delta = replace(delta, text_end=self._start + delta.text_end, words=words)
            self._drop_said(delta.text_end)
            return delta

    def abort(self) -> None:
        self._stream.abort()

    def hurry(self, urgency: Urgency) -> None:
        self._stream.hurry(urgency)

    def _open(self) -> Stream[str, SpeechDelta]:
        stream = self._speaker.open(self._request())
        # In the very call that aborts or hurries the reply.
        self._ticket.on_abort(stream.abort)
        self._ticket.on_hurry(stream.hurry)
        return stream

    def _drop_said(self, said_end: int) -> None:
        while self._unsaid and self._over + len(self._unsaid[0]) <= said_end:
            self._over += len(self._unsaid.popleft())

    async def _begin_anew(self) -> None:
        self._stream = stream = self._open()
        self._start = self._over
        if self._unsaid:
            # In one piece: to push several might wait for the reader, who waits here.
            await stream.push("".join(self._unsaid))
        if self._is_finished:
            await stream.finish()
