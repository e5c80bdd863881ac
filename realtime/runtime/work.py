"""Stage work of one session: a task per request, each of whose results becomes an event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace

from pipelines.ports import Cascade, RecogniseStream, ReplyStream
from pipelines.types import (
    Finished,
    RecogniseRequest,
    ReplyRequest,
    Samples,
    SpeechDelta,
    StageError,
    TextDelta,
    ToolCallDelta,
    Urgency,
    Usage,
    UsageSoFar,
    VoiceFed,
    Written,
)
from realtime.audio.level import PCM_CEILING, TELEPHONE_CEILING
from realtime.audio.voice import VoiceChain
from realtime.observe.metrics import Count, Metrics
from realtime.protocol.formats import is_telephone
from realtime.runtime.egress import Egress
from realtime.runtime.turn_audio import TurnAudio
from realtime.runtime.voice_lookup import VoiceLookup
from realtime.session.events import (
    Event,
    JudgeAnswered,
    JudgeFailed,
    ReplyAudio,
    ReplyFailed,
    ReplyFinished,
    ReplyText,
    ReplyToolCall,
    ReplyUsage,
    ReplyVoiced,
    ReplyWritten,
    TranscriptFailed,
    TranscriptFinal,
    TranscriptPartial,
)
from realtime.session.settings import AudioFormat

log = logging.getLogger(__name__)

# A verdict on a pause that comes later than this decides nothing any more.
_JUDGE_DEADLINE_S = 2.0
# The longest turn on a loaded machine; the machine's own deadline is mostly shorter.
_RECOGNISE_DEADLINE_S = 40.0
_LISTEN_DEADLINE_S = 30.0 + _RECOGNISE_DEADLINE_S  # beside it, the longest turn


@dataclass(slots=True, eq=False)
class _Work:
    request: str
    urgency: Urgency = Urgency.FIRST_AUDIO
    position: int | None = None  # of a question to the judge: where its audio ended
    audio: TurnAudio | None = None  # of a recognition that follows a turn
    stream: RecogniseStream | ReplyStream | None = None
    reply: ReplyStream | None = None  # the stream, of a reply
    task: asyncio.Task[None] | None = None
    is_dead: bool = False  # aborted: delivers nothing any more
    is_parked: bool = False  # waits for the listener or the speaker, not for a stage
    is_written: bool = False  # of a reply: nothing but its speech is to come


class Works:
    """Opens, hurries and aborts requests.

    `deliver` gets each result as an event; what an aborted request still yields is dropped.
    voices: knows those that were uploaded; None: there are none.
    """

    def __init__(
        self,
        cascade: Cascade,
        egress: Egress,
        metrics: Metrics,
        group: asyncio.TaskGroup,
        deliver: Callable[[Event], None],
        voices: VoiceLookup | None = None,
    ) -> None:
        self._voices = voices
        self._cascade = cascade
        self._egress = egress
        self._metrics = metrics
        self._group = group
        self._deliver = deliver
        self._works: dict[str, _Work] = {}
        self.changed = asyncio.Event()  # set whenever a request ends or comes to rest

    # ---- requests ----------------------------------------------------------------------------

    def judge(self, request: str, audio: Samples, position: int) -> None:
        work = _Work(request, position=position)
        self._spawn(work, self._judge(work, audio))

    def recognise(self, request: RecogniseRequest, audio: Samples) -> None:
        work = _Work(request.request_id, request.urgency)
        self._spawn(work, self._recognise(work, request, audio))

    def listen(self, request: RecogniseRequest, audio: TurnAudio) -> None:
        """Recognise what `audio` brings, until it is finished."""
        work = _Work(request.request_id, request.urgency, audio=audio, is_parked=True)
        self._spawn(work, self._listen(work, request, audio))

    def hear_out(self, request: str, end: int) -> bool:
        """A request that listens has all its audio: now it is waited for. False: none listens."""
        work = self._works.get(request)
        if work is None or work.is_dead or work.audio is None or work.audio.is_finished:
            return False
        work.is_parked = False
        work.audio.finish(end)
        self.hurry(request, Urgency.FIRST_AUDIO)
        return True

    def notice_audio(self) -> None:
        """More of the user has been heard."""
        for work in self._works.values():
            if work.audio is not None:
                work.audio.notice()

    def reply(self, request: ReplyRequest, audio_format: AudioFormat) -> None:
        work = _Work(request.request_id, request.urgency)
        if request.speak:
            self._egress.open(request.request_id, audio_format, lambda: self._go_on(work))
        self._spawn(work, self._reply(work, request, audio_format))

    def hurry(self, request: str, urgency: Urgency) -> None:
        work = self._works.get(request)
        if work is not None and not work.is_dead and work.urgency is not urgency:
            work.urgency = urgency
            if work.stream is not None:
                work.stream.hurry(urgency)

    def abort(self, request: str) -> None:
        """Nothing of this request is delivered from here on. Idempotent."""
        work = self._works.get(request)
        if work is None or work.is_dead:
            return
        work.is_dead = True
        self._metrics.add(Count.WORK_ABORTED)
        if work.stream is not None:
            work.stream.abort()
        if work.task is not None:
            work.task.cancel()
        self.changed.set()

    def close(self) -> None:
        """Abort everything: the session is over."""
        for request in list(self._works):
            self.abort(request)

    # ---- what is open ------------------------------------------------------------------------

    @property
    def open_requests(self) -> int:
        """Requests whose task has not ended yet, aborted ones included."""
        return len(self._works)

    @property
    def oldest_question(self) -> int | None:
        """Where the audio of the oldest unanswered question to the judge ended."""
        ends = [work.position for work in self._works.values() if not work.is_dead]
        return min((end for end in ends if end is not None), default=None)

    @property
    def is_busy(self) -> bool:
        """Whether any request still waits for a stage."""
        return any(not work.is_parked for work in self._works.values())

    def _spawn(self, work: _Work, coroutine: Coroutine[None, None, None]) -> None:
        self._works[work.request] = work
        work.task = self._group.create_task(coroutine, name=f"work {work.request}")
        work.task.add_done_callback(lambda _: self._reap(work))

    def _reap(self, work: _Work) -> None:
        if self._works.get(work.request) is work:
            del self._works[work.request]
        self.changed.set()

    def _pass_on(self, work: _Work, event: Event) -> None:
        if work.is_dead:
            self._metrics.add(Count.STALE_OUTPUTS_DROPPED)
        else:
            self._deliver(event)

    # ---- one task each -----------------------------------------------------------------------

    async def _judge(self, work: _Work, audio: Samples) -> None:
        event: Event
        try:
            async with asyncio.timeout(_JUDGE_DEADLINE_S):
                event = JudgeAnswered(work.request, await self._cascade.judge(audio))
        except Exception as error:
            event = JudgeFailed(work.request, *self._failure(error, "The end-of-turn judge"))
        # Before the answer is delivered: it may let the ingress go on.
        work.position = None
        self._pass_on(work, event)

    async def _recognise(self, work: _Work, request: RecogniseRequest, audio: Samples) -> None:
        event: Event | None = None
        try:
            async with asyncio.timeout(_RECOGNISE_DEADLINE_S):
                stream = work.stream = self._cascade.recognise(request)
                try:
                    await stream.push(audio)
                    await stream.finish()
                    event = await self._hear(work, stream)
                finally:
                    if not isinstance(event, TranscriptFinal):
                        stream.abort()
        except Exception as error:
            event = TranscriptFailed(work.request, *self._failure(error, "The recogniser"))
        if event is not None:
            self._pass_on(work, event)

    async def _listen(self, work: _Work, request: RecogniseRequest, audio: TurnAudio) -> None:
        event: Event | None = None
        try:
            async with asyncio.timeout(_LISTEN_DEADLINE_S), asyncio.TaskGroup() as parts:
                stream = work.stream = self._cascade.recognise(request)
                if work.urgency is not request.urgency:
                    stream.hurry(work.urgency)
                feeding = parts.create_task(_feed(stream, audio))
                try:
                    event = await self._hear(work, stream)
                finally:
                    feeding.cancel()
                    if not isinstance(event, TranscriptFinal):
                        stream.abort()
        except* Exception as errors:
            failure = self._failure(errors.exceptions[0], "The recogniser")
            event = TranscriptFailed(work.request, *failure)
        if event is not None:
            self._pass_on(work, event)

    async def _hear(self, work: _Work, stream: RecogniseStream) -> Event:
        """The final transcript, or why there is none; partial ones are passed on."""
        final: Event | None = None
        try:
            async for heard in stream:
                if heard.is_final:
                    final = TranscriptFinal(work.request, heard.text)
                else:
                    self._pass_on(work, TranscriptPartial(work.request, heard.text))
            if final is None:
                raise StageError("asr_failed", "The recogniser ended without a transcript.")
            return final
        except Exception as error:
            return TranscriptFailed(work.request, *self._failure(error, "The recogniser"))

    async def _reply(self, work: _Work, request: ReplyRequest, audio_format: AudioFormat) -> None:
        ceiling = TELEPHONE_CEILING if is_telephone(audio_format) else PCM_CEILING
        chain = VoiceChain(audio_format.rate_hz, ceiling)
        ending: Event | None = None
        text_end = 0
        voiced = 0  # samples of the voice, at its own rate
        try:
            if self._voices is not None and request.speak:
                request = replace(request, sample=await self._voices.find(request.voice))
            stream = self._cascade.reply(request)
            work.stream = work.reply = stream
            if work.urgency is not request.urgency:
                stream.hurry(work.urgency)
            try:
                async for output in stream:
                    match output:
                        case TextDelta():
                            self._pass_on(work, ReplyText(work.request, output.text))
                        case ToolCallDelta():
                            self._pass_on(work, _tool_call(work.request, output))
                        case UsageSoFar(usage):
                            self._pass_on(work, _usage(work.request, usage))
                        case VoiceFed():
                            self._pass_on(work, ReplyVoiced(work.request))
                        case SpeechDelta():
                            text_end = output.text_end
                            words = _words_on_wire(output, voiced, audio_format.rate_hz)
                            voiced += len(output.samples)
                            ready = chain.process(output.samples, output.rate_hz)
                            self._speak(work, ready, text_end, words)
                        case Written(reason):
                            work.is_written = True
                            if reason is not None:
                                self._pass_on(work, ReplyWritten(work.request, reason.value))
                            self._rest(work)
                        case Finished():
                            ending = _finished(work.request, output)
            finally:
                if ending is None:
                    stream.abort()
            if ending is None:
                raise StageError("reply_failed", "The reply broke off without an ending.")
        except Exception as error:
            ending = ReplyFailed(work.request, *self._failure(error, "The reply"))
        # What was synthesised leaves, however the reply ended.
        rest = chain.flush()
        if rest is not None and len(rest):
            self._speak(work, rest, text_end)
        if not work.is_dead:
            self._egress.finish(work.request)
        self._pass_on(work, ending)

    def _speak(
        self,
        work: _Work,
        samples: Samples,
        text_end: int,
        words: tuple[tuple[int, int], ...] = (),
    ) -> None:
        """Samples into the egress and word of them to the machine, with nothing in between."""
        if not work.is_dead:
            self._egress.add(work.request, samples)
        self._pass_on(work, ReplyAudio(work.request, len(samples), text_end, words))
        self._rest(work)

    def _rest(self, work: _Work) -> None:
        """A listener who has enough makes the voice wait; what is written comes all the same."""
        if work.reply is None or work.is_dead or self._egress.has_room(work.request):
            return
        work.reply.hold_speech(True)
        work.is_parked = work.is_written
        self.changed.set()

    def _go_on(self, work: _Work) -> None:
        work.is_parked = False
        if work.reply is not None and not work.is_dead:
            work.reply.hold_speech(False)

    def _failure(self, error: Exception, what: str) -> tuple[str, str]:
        """The code and the message of a failure, for the machine."""
        self._metrics.add(Count.WORK_FAILED)
        if isinstance(error, StageError):
            log.warning("%s failed: %s: %s", what, error.code, error.detail)
            return error.code, error.message
        if isinstance(error, TimeoutError):
            log.warning("%s did not answer in time", what)
            return "stage_timeout", f"{what} did not answer in time."
        log.error("%s failed unexpectedly", what, exc_info=error)
        return "internal_error", f"{what} failed unexpectedly; the server's log has the details."


async def _feed(stream: RecogniseStream, audio: TurnAudio) -> None:
    async for piece in audio.pieces():
        await stream.push(piece)
    await stream.finish()


def _words_on_wire(delta: SpeechDelta, before: int, rate_hz: int) -> tuple[tuple[int, int], ...]:
    """Where the words of a delta end in the whole reply, at the wire's rate.

    before: samples of the deltas before it, at the voice's rate; rounding does not add up.
    """
    return tuple(
        (round((before + word.samples) * rate_hz / delta.rate_hz), word.text_end)
        for word in delta.words
    )


def _tool_call(request: str, delta: ToolCallDelta) -> ReplyToolCall:
    return ReplyToolCall(request, delta.index, delta.call_id, delta.name, delta.arguments)


def _usage(request: str, usage: Usage) -> ReplyUsage:
    return ReplyUsage(request, usage.input_tokens, usage.cached_tokens, usage.output_tokens)


def _finished(request: str, output: Finished) -> ReplyFinished:
    usage = output.usage
    return ReplyFinished(
        request,
        output.reason.value,
        usage.input_tokens,
        usage.cached_tokens,
        usage.output_tokens,
    )
