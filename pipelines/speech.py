"""Display text, as it is written, to what one voice says, and back to positions in that text.

Replies and text that is pushed from elsewhere are spoken alike: this is what they share.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pipelines.ports import Stream
from pipelines.runtime.loop_stage import LoopStream
from pipelines.text.chunker import Utterance
from pipelines.text.narration import Narration
from pipelines.text.positions import Positions, displayed
from pipelines.types import SpeechDelta, Urgency

# Text ahead of the voice: hours of speech, and no memory to speak of.
UNSAID_LIMIT_CHARS = 100_000
PAUSE_MS = 150  # of a writer: a few tokens of a small model on two cores, at some 40 ms each

Voice = Stream[str, SpeechDelta]


class Speech:
    """The text of one voice. One task feeds the voice; whoever reads it places what it says.

    pause_ms: how long a writer pauses until its whole words are spoken already.
    on_first_words: awaited before the voice gets the first words.
    """

    def __init__(
        self, pause_ms: int, on_first_words: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._pause_ms = pause_ms
        self._on_first_words = on_first_words
        self._narration = Narration()
        self._utterances: deque[Utterance] = deque()
        self._changed = asyncio.Event()  # text was written, or the writing has ended
        self._is_written = False
        self._positions = Positions()
        self._released_chars = 0  # that the voice gets, of the text so far
        self._said_chars = 0  # of them
        self.covered = 0  # display characters that the speech so far stands for
        self.has_said = False  # whether any of the text was speakable

    @property
    def unsaid_chars(self) -> int:
        """What the voice has still to say of the text that is worth speaking."""
        return self._released_chars - self._said_chars

    # ---- the text ----------------------------------------------------------------------------

    def write(self, text: str) -> None:
        self._release(self._narration.feed(text))

    def flush(self) -> None:
        """What was written is said, though its sentence may go on."""
        self._release(self._narration.flush())

    def end(self) -> None:
        """No more text comes. Idempotent."""
        self._is_written = True
        self._changed.set()

    def _release(self, utterances: list[Utterance]) -> None:
        self._utterances.extend(utterances)
        self._released_chars += sum(len(utterance.spoken) for utterance in utterances)
        self._changed.set()

    # ---- the voice ---------------------------------------------------------------------------

    async def feed(self, voice: Voice) -> None:
        """Push utterances as they come, until the text has ended, but for its last words.

        A writer that pauses has its whole words spoken already.
        """
        may_pause = True
        while not (self._is_written and not self._utterances):
            if self._utterances:
                await self.say(self._utterances.popleft(), voice)
                continue
            self._changed.clear()
            waits_for_pause = may_pause and self._narration.pending
            try:
                async with asyncio.timeout(self._pause_ms / 1000 if waits_for_pause else None):
                    await self._changed.wait()
                may_pause = True
            except TimeoutError:
                self._release(self._narration.pause())
                may_pause = False

    async def feed_rest(self, voice: Voice, *, is_whole: bool = True) -> None:
        """Push the last words; of a text that broke off, those up to its last clause end."""
        self._release(self._narration.finish() if is_whole else self._narration.break_off())
        while self._utterances:
            await self.say(self._utterances.popleft(), voice)

    async def say(self, utterance: Utterance, voice: Voice) -> None:
        self._positions.add(utterance)
        if utterance.spoken:
            if not self.has_said and self._on_first_words is not None:
                await self._on_first_words()
            self.has_said = True
            await voice.push(utterance.spoken)

    def place(self, delta: SpeechDelta) -> SpeechDelta:
        """What the voice said next, with its positions in the display text."""
        covered = max(self._positions.to_display(delta.text_end), self.covered)
        words = displayed(delta.words, self._positions.to_display, self._said_chars, self.covered)
        self._said_chars, self.covered = delta.text_end, covered
        self._positions.forget(delta.text_end)
        return replace(delta, text_end=covered, words=words)


async def hand_over(stream: LoopStream[Any, Any], delta: SpeechDelta) -> None:
    """Speech leaves; once the listener hears something, others may be first."""
    await stream.emit(delta)
    if stream.ticket.urgency is Urgency.FIRST_AUDIO:
        stream.hurry(Urgency.STEADY)


def unspeakable_rest(last: SpeechDelta | None, shown_chars: int) -> SpeechDelta | None:
    """Where what cannot be spoken came last: no samples, but now all of the text is covered.

    last: the last speech. shown_chars: of the whole display text.
    """
    if last is None or last.text_end >= shown_chars:
        return None
    return SpeechDelta(np.zeros(0, np.float32), last.rate_hz, shown_chars)
