"""A cascade whose requests are observed on their way: how many, how soon, how fast.

The detector is left alone: it is asked for every 32 ms of every session.
"""

from __future__ import annotations

import time

from pipelines.ports import (
    Capacity,
    Cascade,
    Detector,
    Progress,
    RecogniseStream,
    ReplyStream,
    SpeechStream,
    StageStats,
)
from pipelines.types import RecogniseRequest, ReplyRequest, Samples, SpeakRequest
from realtime.observe.metrics import Metrics
from realtime.runtime.watched_streams import (
    MS_PER_S,
    NowS,
    WatchedRecognition,
    WatchedReply,
    WatchedSpeech,
)


class WatchedCascade:
    """Implements `pipelines.ports.Cascade` over another one."""

    def __init__(self, cascade: Cascade, metrics: Metrics, now_s: NowS = time.monotonic) -> None:
        self._cascade = cascade
        self._metrics = metrics
        self._now_s = now_s

    @property
    def capacity(self) -> Capacity | None:
        return self._cascade.capacity

    @property
    def stats(self) -> tuple[StageStats, ...]:
        return self._cascade.stats

    @property
    def voices(self) -> tuple[str, ...]:
        return self._cascade.voices

    @property
    def copies_voices(self) -> bool:
        return self._cascade.copies_voices

    @property
    def model(self) -> str:
        return self._cascade.model

    @property
    def active(self) -> int:
        return self._cascade.active

    async def start(self, progress: Progress) -> None:
        await self._cascade.start(progress)

    async def close(self) -> None:
        await self._cascade.close()

    def detect(self) -> Detector:
        return self._cascade.detect()

    async def judge(self, audio: Samples) -> float:
        begun_s = self._now_s()
        verdict = await self._cascade.judge(audio)
        self._metrics.observe("judge_ms", (self._now_s() - begun_s) * MS_PER_S)
        return verdict

    def recognise(self, request: RecogniseRequest) -> RecogniseStream:
        return WatchedRecognition(self._cascade.recognise(request), self._metrics, self._now_s)

    def reply(self, request: ReplyRequest) -> ReplyStream:
        return WatchedReply(self._cascade.reply(request), self._metrics, self._now_s)

    def speak(self, request: SpeakRequest) -> SpeechStream:
        return WatchedSpeech(self._cascade.speak(request), self._metrics, self._now_s)
