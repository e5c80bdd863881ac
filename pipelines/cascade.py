"""The cascade: hears with a detector, a judge and a recogniser; replies by writing and speaking.

A reply is one stream over two stages. Its text is cut into chunks while it is still written, and
each chunk is spoken at once; text and speech leave in one order, and `Finished` leaves last. Text
that is written elsewhere is spoken in the same way.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol, cast

from pipelines.ports import (
    Capacity,
    Detector,
    DetectorStage,
    Judge,
    Killable,
    Metered,
    Progress,
    Recogniser,
    RecogniseStream,
    ReplyStream,
    Speaker,
    SpeechStream,
    StageStats,
    Writer,
)
from pipelines.reply import Reply, ReplyTiming
from pipelines.runtime.latency import AbortLatency
from pipelines.runtime.lead import SPEAKER_LEAD, Lead, speech_seconds
from pipelines.runtime.loop_stage import LoopStage, LoopStream
from pipelines.spoken_text import SpeechStage, SpokenText
from pipelines.types import (
    RecogniseRequest,
    ReplyOutput,
    ReplyRequest,
    Samples,
    SpeakRequest,
    SpeechDelta,
)

# Outputs of a reply or a speech that wait for its reader: a pause of the reader's task must not
# starve the voice, and a reader that stalls must not let it grow without bound.
OUTPUT_LIMIT = 256


def _seconds(output: ReplyOutput) -> float:
    return speech_seconds(output) if isinstance(output, SpeechDelta) else 0.0


_REPLY_LEAD: Lead[ReplyOutput] = Lead(_seconds)


logger = logging.getLogger(__name__)


class _Part(Protocol):
    async def start(self, progress: Progress) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class CascadeOptions:
    """voices: names that the speaker knows, the default first. model: the writer's model.

    copies_voices: whether the speaker takes `SpeakRequest.sample`.
    """

    voices: tuple[str, ...]
    model: str
    timing: ReplyTiming = ReplyTiming()
    copies_voices: bool = False


class VoiceCascade:
    """Implements `pipelines.ports.Cascade` over any stages that keep their contracts."""

    def __init__(
        self,
        detector: DetectorStage,
        judge: Judge,
        recogniser: Recogniser,
        writer: Writer,
        speaker: Speaker,
        options: CascadeOptions,
    ) -> None:
        self._detector = detector
        self._judge = judge
        self._recogniser = recogniser
        self._writer = writer
        self._speaker = speaker
        self._options = options
        self._replies: LoopStage[ReplyRequest, None, ReplyOutput] = LoopStage(
            "reply",
            self._work,
            output_limit=OUTPUT_LIMIT,
            stall_timeout_ms=options.timing.stall_timeout_ms,
            lead=_REPLY_LEAD,
        )
        self._speeches: SpeechStage = LoopStage(
            "speech",
            SpokenText.run,
            output_limit=OUTPUT_LIMIT,
            stall_timeout_ms=options.timing.stall_timeout_ms,
            lead=SPEAKER_LEAD,
        )

    @property
    def voices(self) -> tuple[str, ...]:
        return self._options.voices

    @property
    def copies_voices(self) -> bool:
        return self._options.copies_voices

    @property
    def model(self) -> str:
        return self._options.model

    @property
    def active(self) -> int:
        """Requests open on any stage; a reply or a speech counts beside its parts."""
        stages = (self._detector, self._recogniser, self._writer, self._speaker)
        return sum(stage.active for stage in (*stages, self._replies, self._speeches))

    @property
    def capacity(self) -> Capacity | None:
        """Of the stage with the least headroom; None while no stage knows."""
        known = [part.capacity for part in self._metered()]
        measured = [capacity for capacity in known if capacity is not None]
        return min(measured, key=lambda capacity: capacity.headroom, default=None)

    @property
    def stats(self) -> tuple[StageStats, ...]:
        return tuple(part.stats for part in self._metered())

    @property
    def reply_abort_latency(self) -> AbortLatency:
        """How long aborted replies took until nothing of them was left on this loop."""
        return self._replies.abort_latency

    @property
    def speech_abort_latency(self) -> AbortLatency:
        """The same of speeches."""
        return self._speeches.abort_latency

    async def start(self, progress: Progress) -> None:
        """Start the stages one by one, so that their loads do not compete.

        If one fails, those that run are closed again and its error is raised.
        """
        try:
            for stage in self._stages():
                await stage.start(progress)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the replies and speeches first, then what they stand on, all at once: each may
        take a while."""
        *stages, speeches, replies = self._stages()
        await replies.close()
        await speeches.close()
        async with asyncio.TaskGroup() as tasks:
            for stage in stages:
                tasks.create_task(_close(stage))

    def kill(self) -> None:
        """Have a `close` that is under way wait for no worker any more."""
        for stage in self._stages():
            if isinstance(stage, Killable):
                stage.kill()

    def detect(self) -> Detector:
        return self._detector.open()

    async def judge(self, audio: Samples) -> float:
        return await self._judge.ask(audio)

    def recognise(self, request: RecogniseRequest) -> RecogniseStream:
        return self._recogniser.open(request)

    def reply(self, request: ReplyRequest) -> ReplyStream:
        """The reply begins at once, before it is iterated."""
        return self._replies.open(request)

    def speak(self, request: SpeakRequest) -> SpeechStream:
        """Speech begins with the first words that are pushed. Takes some of the loop for each."""
        return SpokenText(self._speeches, self._speaker, request, self._options.timing.pause_ms)

    async def _work(self, request: ReplyRequest, stream: LoopStream[None, ReplyOutput]) -> None:
        reply = Reply(self._writer, self._speaker, request, self._options.timing, stream)
        await reply.run()

    def _metered(self) -> list[Metered]:
        # A look at the classes, because the properties cost something.
        return [
            cast("Metered", part)
            for part in self._stages()
            if hasattr(type(part), "stats") and hasattr(type(part), "capacity")
        ]

    def _stages(self) -> tuple[_Part, ...]:
        """The cheap ones first: what is wrong with them shows before the big loads."""
        return (
            self._detector,
            self._judge,
            self._speaker,
            self._recogniser,
            self._writer,
            self._speeches,
            self._replies,
        )


async def _close(stage: _Part) -> None:
    try:
        await stage.close()
    except Exception:
        # The others are closed all the same.
        logger.exception("a stage could not be closed")
