"""The real cascade over scripted stages."""

from __future__ import annotations

from pipelines.cascade import CascadeOptions, VoiceCascade
from pipelines.fakes.hearing import FakeDetectorStage, FakeJudge, FakeRecogniser
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.writer import FakeWriter
from pipelines.reply import ReplyTiming


class FakeCascade(VoiceCascade):
    """Every stage has a default; they are at hand as attributes."""

    def __init__(
        self,
        *,
        detector: FakeDetectorStage | None = None,
        judge: FakeJudge | None = None,
        recogniser: FakeRecogniser | None = None,
        writer: FakeWriter | None = None,
        speaker: FakeSpeaker | None = None,
        voices: tuple[str, ...] = ("tone",),
        model: str = "script",
        timing: ReplyTiming | None = None,
        copies_voices: bool = True,
    ) -> None:
        self.detector = detector or FakeDetectorStage()
        self.judge_stage = judge or FakeJudge()
        self.recogniser = recogniser or FakeRecogniser()
        self.writer = writer or FakeWriter()
        self.speaker = speaker or FakeSpeaker(copies_voices=copies_voices)
        super().__init__(
            self.detector,
            self.judge_stage,
            self.recogniser,
            self.writer,
            self.speaker,
            CascadeOptions(voices, model, timing or ReplyTiming(), copies_voices),
        )
