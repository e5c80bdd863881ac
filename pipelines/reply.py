"""One reply: a writer and a speaker at work at the same time, behind one ordered stream."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from pipelines.ports import Speaker, Stream, Writer
from pipelines.runtime.failures import stage_timeout
from pipelines.runtime.loop_stage import LoopStream
from pipelines.text.chunker import Chunk, Chunker
from pipelines.text.positions import Positions
from pipelines.text.spoken import spoken
from pipelines.types import (
    Finished,
    ReplyOutput,
    ReplyRequest,
    SpeakRequest,
    SpeechDelta,
    StageError,
    TextDelta,
    ToolCallDelta,
    Urgency,
    WriteOutput,
    WriteRequest,
)

CHUNK_LIMIT = 64  # chunks, about a thousand words, that the writer may be ahead of the voice


@dataclass(frozen=True, slots=True)
class ReplyTiming:
    pause_ms: int = 150  # a few tokens of a small model on two cores, at some 40 ms each
    writer_timeout_ms: int = 20_000  # longer than any honest prefill, within a caller's patience
    stall_timeout_ms: int = 30_000  # the same for the whole reply, its voice included


class Reply:
    """Writes, chunks and speaks one request into `stream`; `run` raises StageError at its end."""

    def __init__(
        self,
        writer: Writer,
        speaker: Speaker,
        request: ReplyRequest,
        timing: ReplyTiming,
        stream: LoopStream[None, ReplyOutput],
    ) -> None:
        self._writer = writer
        self._speaker = speaker
        self._request = request
        self._timing = timing
        self._stream = stream
        self._chunker = Chunker()
        self._chunks: deque[Chunk] = deque()
        self._changed = asyncio.Event()  # text was written, or the writing has ended
        self._taken = asyncio.Event()  # the voice took a chunk
        self._written = False
        self._shown_chars = 0
        self._positions = Positions()
        self._last_speech: SpeechDelta | None = None
        self._finished: Finished | None = None
        self._error: StageError | None = None

    async def run(self) -> None:
        writing = self._writer.open(self._write_request())
        self._adopt(writing)
        if not self._request.speak:
            try:
                await self._write(writing)
            finally:
                writing.abort()
        else:
            speaking = self._speaker.open(self._speak_request())
            self._adopt(speaking)
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._write(writing))
                    tasks.create_task(self._feed(speaking))
                    tasks.create_task(self._speak(speaking, writing))
            finally:
                writing.abort()
                speaking.abort()
        await self._conclude()

    def _adopt(self, child: Stream[None, WriteOutput] | Stream[str, SpeechDelta]) -> None:
        """A child shares the reply's fate: it dies in the very call that aborts the reply."""
        self._stream.ticket.on_abort(child.abort)
        self._stream.ticket.on_hurry(child.hurry)

    # ---- the writer --------------------------------------------------------------------------

    async def _write(self, writing: Stream[None, WriteOutput]) -> None:
        outputs = aiter(writing)
        timeout_s = self._timing.writer_timeout_ms / 1000
        try:
            while True:
                # The timeout may leave a stream that cannot go on: it is not read again.
                async with asyncio.timeout(timeout_s):
                    output = await anext(outputs)
                match output:
                    case TextDelta():
                        await self._show(output)
                    case ToolCallDelta():
                        await self._stream.emit(output)
                    case Finished():
                        # Reading goes on to the end, which lets the writer tidy up by itself.
                        self._finished = output
                        self._end_text()
        except StopAsyncIteration:
            if self._finished is None:
                self._fail(_broken_off(self._writer.name))
        except TimeoutError:
            if self._finished is None:
                self._fail(stage_timeout(self._writer.name, timeout_s))
        except StageError as error:
            if self._finished is None:
                self._fail(error)
        finally:
            self._end_text()

    def _end_text(self) -> None:
        self._written = True
        self._changed.set()

    async def _show(self, delta: TextDelta) -> None:
        """Text leaves before the voice gets it, so that speech never runs ahead of its text."""
        if not delta.text:
            return
        await self._stream.emit(delta)
        self._shown_chars += len(delta.text)
        if not self._request.speak:
            return
        self._chunks.extend(self._chunker.feed(delta.text))
        self._changed.set()
        while len(self._chunks) > CHUNK_LIMIT:
            self._taken.clear()
            await self._taken.wait()

    # ---- the voice ---------------------------------------------------------------------------

    async def _feed(self, speaking: Stream[str, SpeechDelta]) -> None:
        """Push chunks as they come; a writer that pauses has its whole words spoken already."""
        may_pause = True
        while not (self._written and not self._chunks):
            if self._chunks:
                chunk = self._chunks.popleft()
                self._taken.set()
                await self._say(chunk, speaking)
                continue
            self._changed.clear()
            waits_for_pause = may_pause and self._chunker.pending
            try:
                async with asyncio.timeout(
                    self._timing.pause_ms / 1000 if waits_for_pause else None
                ):
                    await self._changed.wait()
                may_pause = True
            except TimeoutError:
                self._chunks.extend(self._chunker.pause())
                may_pause = False
        if self._error is None:
            for chunk in self._chunker.finish():
                await self._say(chunk, speaking)
        await speaking.finish()

    async def _say(self, chunk: Chunk, speaking: Stream[str, SpeechDelta]) -> None:
        said = spoken(chunk.text)
        if not said:
            self._positions.skip(chunk.end)
            return
        # A voice that joins its chunks must not join their words.
        said += " " if chunk.text[-1].isspace() else ""
        self._positions.add(len(said), chunk.end)
        await speaking.push(said)

    async def _speak(
        self, speaking: Stream[str, SpeechDelta], writing: Stream[None, WriteOutput]
    ) -> None:
        try:
            async for delta in speaking:
                covered = self._positions.to_display(delta.text_end)
                if self._last_speech is not None:
                    covered = max(covered, self._last_speech.text_end)
                self._last_speech = replace(delta, text_end=covered)
                await self._stream.emit(self._last_speech)
                if self._stream.ticket.urgency is Urgency.FIRST_AUDIO:
                    # The listener hears something now: others may be first.
                    self._stream.hurry(Urgency.STEADY)
        except StageError as error:
            self._fail(error)
            writing.abort()

    # ---- the end -----------------------------------------------------------------------------

    def _fail(self, error: StageError) -> None:
        """The first error is the cause; what follows from it is not told."""
        if self._error is None:
            self._error = error

    async def _conclude(self) -> None:
        if self._error is not None:
            raise self._error
        last = self._last_speech
        if last is not None and last.text_end < self._shown_chars:
            # What cannot be spoken came last: no samples, but now all of the text is covered.
            silence = np.zeros(0, np.float32)
            await self._stream.emit(SpeechDelta(silence, last.rate_hz, self._shown_chars))
        assert self._finished is not None
        await self._stream.emit(self._finished)

    # ---- the requests of the parts -----------------------------------------------------------

    def _write_request(self) -> WriteRequest:
        return WriteRequest(
            request_id=self._request.request_id,
            messages=self._request.messages,
            urgency=self._stream.ticket.urgency,
            tools=self._request.tools,
            tool_choice=self._request.tool_choice,
            max_output_tokens=self._request.max_output_tokens,
            temperature=self._request.temperature,
            is_spoken=self._request.speak,
        )

    def _speak_request(self) -> SpeakRequest:
        return SpeakRequest(
            request_id=self._request.request_id,
            voice=self._request.voice,
            urgency=self._stream.ticket.urgency,
            speed=self._request.speed,
        )


def _broken_off(stage: str) -> StageError:
    return StageError(
        "writer_broke_off",
        f"The {stage} stage stopped in the middle of a reply without saying why: see its log.",
    )
