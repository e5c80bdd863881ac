"""Streams of a cascade that are observed on their way. Each implements the port of its own kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, TypeVar

from pipelines.ports import RecogniseStream, ReplyStream, SpeechStream, Stream
from pipelines.types import HEARING_RATE_HZ, ReplyOutput, Samples, SpeechDelta, Transcript, Urgency
from realtime.observe.metrics import Count, Metrics

_US_PER_S = 1_000_000
MS_PER_S = 1000.0

NowS = Callable[[], float]  # monotone
In = TypeVar("In")
Out = TypeVar("Out")
Watched = TypeVar("Watched", bound=Stream[Any, Any])


class _Outputs(Generic[Out]):
    """A stream's outputs as they are asked for, each shown to `take`; `end` is told how they ended.

    waited_s: how long they were waited for, all together.
    """

    def __init__(
        self,
        outputs: AsyncIterator[Out],
        now_s: NowS,
        take: Callable[[Out], None],
        end: Callable[[str], None] = lambda _outcome: None,
    ) -> None:
        self._outputs = outputs
        self._now_s = now_s
        self._take = take
        self._end = end
        self.waited_s = 0.0

    def __aiter__(self) -> AsyncIterator[Out]:
        return self

    async def __anext__(self) -> Out:
        asked_s = self._now_s()
        try:
            output = await anext(self._outputs)
        except StopAsyncIteration:
            self.waited_s += self._now_s() - asked_s
            self._end("completed")
            raise
        except Exception:
            self._end("failed")
            raise
        self.waited_s += self._now_s() - asked_s
        self._take(output)
        return output


class _Outcome:
    """Counts how a request ended, once."""

    def __init__(self, metrics: Metrics, what: Count) -> None:
        self._metrics = metrics
        self._what = what
        self._is_told = False

    def tell(self, outcome: str) -> None:
        if not self._is_told:
            self._is_told = True
            self._metrics.add(self._what, labels=(outcome,))


class _Watched(Generic[In, Watched]):
    """What goes to the stream as it came."""

    def __init__(self, stream: Watched, metrics: Metrics, now_s: NowS) -> None:
        self._stream = stream
        self._metrics = metrics
        self._now_s = now_s

    async def push(self, item: In) -> None:
        await self._stream.push(item)

    async def finish(self) -> None:
        await self._stream.finish()

    def abort(self) -> None:
        self._stream.abort()

    def hurry(self, urgency: Urgency) -> None:
        self._stream.hurry(urgency)


class WatchedRecognition(_Watched[Samples, RecogniseStream]):
    """One recording or turn. Its time runs from `finish`: before, it waits for its speaker."""

    def __init__(self, stream: RecogniseStream, metrics: Metrics, now_s: NowS) -> None:
        super().__init__(stream, metrics, now_s)
        self._finished_s: float | None = None
        self._outcome = _Outcome(metrics, Count.RECOGNITIONS)

    async def push(self, item: Samples) -> None:
        await super().push(item)
        self._metrics.add(Count.AUDIO_RECOGNISED_US, len(item) * _US_PER_S // HEARING_RATE_HZ)

    async def finish(self) -> None:
        self._finished_s = self._now_s()
        await super().finish()

    def __aiter__(self) -> AsyncIterator[Transcript]:
        return _Outputs(aiter(self._stream), self._now_s, self._take, self._outcome.tell)

    def abort(self) -> None:
        self._outcome.tell("aborted")
        super().abort()

    def _take(self, heard: Transcript) -> None:
        if not heard.is_final:
            return
        self._outcome.tell("completed")  # nobody has to wait for the end behind it
        if self._finished_s is not None:
            took_s = self._now_s() - self._finished_s
            self._metrics.observe("recognition_ms", took_s * MS_PER_S)


class WatchedReply(_Watched[None, ReplyStream]):
    """Of a reply the session knows everything but how much sound was made for it."""

    def __aiter__(self) -> AsyncIterator[ReplyOutput]:
        return _Outputs(aiter(self._stream), self._now_s, self._take)

    def hold_speech(self, is_held: bool) -> None:
        self._stream.hold_speech(is_held)

    def _take(self, output: ReplyOutput) -> None:
        if isinstance(output, SpeechDelta):
            _count_sound(self._metrics, output, "reply")


class WatchedSpeech(_Watched[str, SpeechStream]):
    """Only what the reader waits for counts: a reader that is slow itself makes no voice slow."""

    def __init__(self, stream: SpeechStream, metrics: Metrics, now_s: NowS) -> None:
        super().__init__(stream, metrics, now_s)
        self._begun_s: float | None = None
        self._is_text_whole = False
        self._was_text_whole = False  # when the voice was first heard
        self._sound_s = 0.0
        self._outputs: _Outputs[SpeechDelta] | None = None
        self._outcome = _Outcome(metrics, Count.SPEECH_REQUESTS)

    async def push(self, item: str) -> None:
        if self._begun_s is None:
            self._begun_s = self._now_s()
        await super().push(item)

    async def flush(self) -> None:
        await self._stream.flush()

    async def finish(self) -> None:
        self._is_text_whole = True
        await super().finish()

    def __aiter__(self) -> AsyncIterator[SpeechDelta]:
        self._outputs = _Outputs(aiter(self._stream), self._now_s, self._take, self._end)
        return self._outputs

    def abort(self) -> None:
        self._outcome.tell("aborted")
        super().abort()

    def _take(self, delta: SpeechDelta) -> None:
        if len(delta.samples) and not self._sound_s:
            self._was_text_whole = self._is_text_whole
            if self._begun_s is not None:
                took_s = self._now_s() - self._begun_s
                self._metrics.observe("speech_first_audio_ms", took_s * MS_PER_S)
        self._sound_s += _count_sound(self._metrics, delta, "speech")

    def _end(self, outcome: str) -> None:
        self._outcome.tell(outcome)
        is_whole = outcome == "completed" and self._was_text_whole
        if is_whole and self._outputs is not None:  # it sounded
            waited_ms = self._outputs.waited_s * MS_PER_S
            self._metrics.observe("speech_waited_ms_per_s", waited_ms / self._sound_s)


def _count_sound(metrics: Metrics, delta: SpeechDelta, use: str) -> float:
    """Seconds of sound in it, counted."""
    count = len(delta.samples)
    metrics.add(Count.AUDIO_SPOKEN_US, count * _US_PER_S // delta.rate_hz, labels=(use,))
    return count / delta.rate_hz
