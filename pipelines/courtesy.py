"""What the voice says of its own accord, so that no caller is left in silence.

A filler while the language model is slow, an apology when it fails before its first word, and a
word when it ends without any.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pipelines.ports import Speaker, Stream
from pipelines.runtime.ticket import Ticket
from pipelines.text.spoken import spoken
from pipelines.types import ReplyRequest, SpeakRequest, SpeechDelta, StageError, Urgency

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Courtesy:
    """filler_after_ms: how long a listener waits for the first words; None: for ever.

    fillers: what is said then, in turn; they are sound alone, no part of the reply's text.
    apology: said, as text too, when the writer fails before anything was said; None: silence.
    empty: the same when the writer ends without a call and without anything to say.
    """

    filler_after_ms: int | None = None
    fillers: tuple[str, ...] = ("One moment.",)
    apology: str | None = None
    empty: str | None = None

    def filler(self, request: ReplyRequest) -> str | None:
        """Which filler this reply may get: the next one at each turn, alike in every replay."""
        if self.filler_after_ms is None or not self.fillers or not request.speak:
            return None
        turns = sum(message.role in ("user", "tool") for message in request.messages)
        return self.fillers[(turns - 1) % len(self.fillers)]

    def excuse(self, has_failed: bool, is_draft: bool, has_called: bool) -> str | None:
        """What to say at the end of a reply of which nothing could be said.

        A draft that fails is dropped unheard, and its reply is begun anew.
        """
        if has_failed:
            return None if is_draft else self.apology
        return None if has_called else self.empty


class Aside:
    """Says phrases by a stream of its own, so that the reply's text and its marks stay apart.

    emit: takes the samples; their `text_end` counts the phrase and means nothing to the reply.
    """

    def __init__(
        self,
        speaker: Speaker,
        request: ReplyRequest,
        ticket: Ticket,
        emit: Callable[[SpeechDelta], Awaitable[None]],
    ) -> None:
        self._speaker = speaker
        self._request = request
        self._ticket = ticket
        self._emit = emit
        self._stream: Stream[str, SpeechDelta] | None = None
        self._has_sounded = False

    async def say(self, phrase: str) -> None:
        """Raises StageError if the voice fails."""
        text = spoken(phrase)
        if not text:
            return
        self._stream = stream = self._speaker.open(
            SpeakRequest(
                request_id=f"{self._request.request_id}-aside",
                voice=self._request.voice,
                urgency=self._ticket.urgency,
                speed=self._request.speed,
                sample=self._request.sample,
            )
        )
        forget = self._ticket.on_abort(stream.abort)
        self._ticket.on_hurry(stream.hurry)
        try:
            await stream.push(text)
            await stream.finish()
            async for delta in stream:
                self._has_sounded = True
                await self._emit(delta)
        finally:
            stream.abort()
            forget()

    def hush(self) -> None:
        """Leave out what nobody has heard the beginning of."""
        if self._stream is not None and not self._has_sounded:
            self._stream.abort()


class Filler:
    """At most one filler for a reply whose first text or call is slow.

    over: set once no sound of it will come any more; the reply's own sound waits for that.
    """

    def __init__(
        self, courtesy: Courtesy, request: ReplyRequest, ticket: Ticket, aside: Aside
    ) -> None:
        self._after_ms = courtesy.filler_after_ms or 0
        self._phrase = courtesy.filler(request)
        self._ticket = ticket
        self._aside = aside
        self._changed = asyncio.Event()
        self._is_settled = False
        self.over = asyncio.Event()

    async def run(self) -> None:
        try:
            if self._phrase is not None and await self._is_due():
                await self._aside.say(self._phrase)
        except StageError as error:
            # The reply itself may fare better, and says so if not.
            logger.warning("a filler was left out: %s: %s", error.code, error.message)
        finally:
            self.over.set()

    def settle(self) -> None:
        """Text or a call has come, or will never come: a filler that has not begun is not said."""
        if not self._is_settled:
            self._is_settled = True
            self._changed.set()
            self._aside.hush()

    async def _is_due(self) -> bool:
        """Wait until somebody has listened to silence for too long. Nobody listens to a draft."""
        self._ticket.on_hurry(lambda _: self._changed.set())
        while not self._is_settled:
            is_awaited = self._ticket.urgency is Urgency.FIRST_AUDIO
            self._changed.clear()
            try:
                async with asyncio.timeout(self._after_ms / 1000 if is_awaited else None):
                    await self._changed.wait()
            except TimeoutError:
                return not self._is_settled
        return False
