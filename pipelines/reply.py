"""One reply: a writer and a speaker at work at the same time, behind one ordered stream."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pipelines.courtesy import Aside, Courtesy, Filler
from pipelines.ports import Speaker, Stream, Writer
from pipelines.recital import Recital
from pipelines.runtime.failures import stage_timeout
from pipelines.runtime.loop_stage import LoopStream
from pipelines.runtime.ticket import Aborted
from pipelines.speech import (
    PAUSE_MS,
    UNSAID_LIMIT_CHARS,
    Speech,
    Voice,
    hand_over,
    unspeakable_rest,
)
from pipelines.text.narration import narrate
from pipelines.types import (
    Finished,
    FinishReason,
    ReplyOutput,
    ReplyRequest,
    SpeakRequest,
    SpeechDelta,
    StageError,
    TextDelta,
    ToolCallDelta,
    Urgency,
    UsageSoFar,
    VoiceFed,
    WriteOutput,
    WriteRequest,
    Written,
    demands_call,
)
from pipelines.voicing import Voicing


@dataclass(frozen=True, slots=True)
class ReplyTiming:
    pause_ms: int = PAUSE_MS
    writer_timeout_ms: int = 20_000  # longer than any honest prefill, within a caller's patience
    stall_timeout_ms: int = 30_000  # the same for the whole reply, its voice included
    courtesy: Courtesy = Courtesy()


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
        self._speech = Speech(timing.pause_ms, self._tell_fed)
        self._shown_chars = 0
        self._last_speech: SpeechDelta | None = None
        self._finished: Finished | None = None
        self._error: StageError | None = None
        self._voice_failed = False
        self._has_called = False
        self._has_shown = False  # whether any of the text is more than white space
        self._aside = Aside(speaker, request, stream.ticket, self._emit_aside)
        self._filler = Filler(timing.courtesy, request, stream.ticket, self._aside)

    async def run(self) -> None:
        writing = self._open_writing()
        self._adopt(writing)
        if not self._request.speak:
            try:
                await self._write(writing)
            finally:
                writing.abort()
        else:
            speaking = Voicing(self._speaker, self._stream.ticket, self._speak_request)
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._write(writing))
                    tasks.create_task(self._feed(speaking))
                    tasks.create_task(self._speak(speaking, writing))
                    tasks.create_task(self._filler.run())
            except* Aborted:
                pass  # one of them ran between the abort and its cancellation
            finally:
                writing.abort()
                speaking.abort()
        await self._conclude()

    def _open_writing(self) -> Stream[None, WriteOutput]:
        if self._request.text is not None:
            return Recital(self._request.text)
        return self._writer.open(self._write_request())

    def _adopt(self, child: Stream[None, WriteOutput]) -> None:
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
                        self._has_called = True
                        self._filler.settle()
                        await self._stream.emit(output)
                    case UsageSoFar():
                        await self._stream.emit(output)
                    case Finished():
                        # Reading goes on to the end, which lets the writer tidy up by itself.
                        self._finished = output
                        self._end_text()
                        await self._tell_written(output.reason)
        except StopAsyncIteration:
            if self._finished is None:
                self._fail(_broken_off(self._writer.name))
        except TimeoutError:
            if self._finished is None:
                self._fail(stage_timeout(self._writer.name, timeout_s))
                writing.abort()  # an apology must not wait for what will not be heard
        except StageError as error:
            if self._finished is None:
                self._fail(error)
                writing.abort()
        finally:
            self._end_text()
        if self._finished is None:
            await self._tell_written(None)

    async def _tell_written(self, reason: FinishReason | None) -> None:
        """Where there is no speech, the end of the reply comes at once and tells it."""
        if self._request.speak and (self._has_shown or self._last_speech is not None):
            await self._stream.emit(Written(reason))

    def _end_text(self) -> None:
        self._filler.settle()
        self._speech.end()

    async def _show(self, delta: TextDelta) -> None:
        """Text leaves before the voice gets it, so that speech never runs ahead of its text."""
        if not delta.text:
            return
        self._filler.settle()
        await self._stream.emit(delta)
        self._shown_chars += len(delta.text)
        self._has_shown = self._has_shown or not delta.text.isspace()
        if not self._request.speak:
            return
        self._speech.write(delta.text)
        # A writer never waits for the voice: whoever makes its text could do nothing else.
        said_end = self._last_speech.text_end if self._last_speech is not None else 0
        if self._shown_chars - said_end > UNSAID_LIMIT_CHARS:
            raise _too_long(self._writer.name)

    # ---- the voice ---------------------------------------------------------------------------

    async def _feed(self, speaking: Voice) -> None:
        await self._speech.feed(speaking)
        await self._speech.feed_rest(speaking, is_whole=self._error is None)
        if not self._speech.has_said and not self._voice_failed:
            await self._excuse(speaking)
        await speaking.finish()

    async def _tell_fed(self) -> None:
        await self._stream.emit(VoiceFed())

    async def _speak(self, speaking: Voice, writing: Stream[None, WriteOutput]) -> None:
        try:
            async for delta in speaking:
                await self._filler.over.wait()
                self._last_speech = self._speech.place(delta)
                await hand_over(self._stream, self._last_speech)
        except StageError as error:
            self._voice_failed = True
            self._fail(error)
            writing.abort()

    async def _excuse(self, speaking: Voice) -> None:
        """Nothing could be said: the listener is told so. A draft that failed stays silent."""
        has_failed = self._error is not None
        is_draft = self._stream.ticket.urgency is Urgency.DRAFT
        # Where a call is demanded, words are no answer, not even that there is none.
        may_say_nothing = self._has_called or demands_call(self._request)
        phrase = self._timing.courtesy.excuse(has_failed, is_draft, may_say_nothing)
        if not phrase:
            return
        if self._has_shown and not has_failed:
            # What can be read but not said stays the reply's text.
            await self._filler.over.wait()
            try:
                await self._aside.say(phrase)
            except StageError as error:
                self._fail(error)
            return
        text = f"… {phrase}" if self._has_shown else phrase
        utterance = narrate(text, self._shown_chars)
        await self._stream.emit(TextDelta(text))
        self._shown_chars += len(text)
        await self._speech.say(utterance, speaking)

    async def _emit_aside(self, delta: SpeechDelta) -> None:
        """Sound that stands for none of the text."""
        covered = self._last_speech.text_end if self._last_speech is not None else 0
        self._last_speech = SpeechDelta(delta.samples, delta.rate_hz, covered)
        await self._stream.emit(self._last_speech)

    # ---- the end -----------------------------------------------------------------------------

    def _fail(self, error: StageError) -> None:
        """The first error is the cause; what follows from it is not told."""
        if self._error is None:
            self._error = error

    async def _conclude(self) -> None:
        self._stream.ticket.check()
        if self._error is not None:
            raise self._error
        rest = unspeakable_rest(self._last_speech, self._shown_chars)
        if rest is not None:
            await self._stream.emit(rest)
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
            parallel_tool_calls=self._request.parallel_tool_calls,
            truncation=self._request.truncation,
        )

    def _speak_request(self) -> SpeakRequest:
        return SpeakRequest(
            request_id=self._request.request_id,
            voice=self._request.voice,
            urgency=self._stream.ticket.urgency,
            speed=self._request.speed,
            sample=self._request.sample,
        )


def _too_long(stage: str) -> StageError:
    return StageError(
        "reply_too_long",
        f"The {stage} stage is more than {UNSAID_LIMIT_CHARS:,} characters ahead of the voice, and "
        "was ended: bound its replies with max_output_tokens.",
    )


def _broken_off(stage: str) -> StageError:
    return StageError(
        "writer_broke_off",
        f"The {stage} stage stopped in the middle of a reply without saying why: see its log.",
    )
