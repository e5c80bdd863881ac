"""Stage work: what becomes of results, failures and aborts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.virtual_time import run_virtual
from pipelines.fakes.writer import FakeWriter, words
from pipelines.ports import Cascade
from pipelines.types import (
    Finished,
    FinishReason,
    RecogniseRequest,
    ReplyRequest,
    SpeechDelta,
    StageError,
    TextDelta,
    ToolCallDelta,
    Urgency,
    Usage,
    Written,
)
from realtime.observe.metrics import Count, Metrics
from realtime.runtime.egress import Egress
from realtime.runtime.work import Works
from realtime.session.effects import PlayReply
from realtime.session.events import (
    Event,
    JudgeAnswered,
    JudgeFailed,
    ReplyAudio,
    ReplyFailed,
    ReplyFinished,
    ReplyText,
    ReplyToolCall,
    ReplyWritten,
    TranscriptFailed,
    TranscriptFinal,
)
from realtime.session.settings import AudioFormat
from tests.realtime.runtime.stand_ins import ScriptedCascade, silence, spoken_reply, tone

PCM = AudioFormat()
QUIET = silence(100, 16_000)


class Rig:
    def __init__(self, group: asyncio.TaskGroup, cascade: Cascade) -> None:
        self.events: list[Event] = []
        self.egress = Egress()
        self.metrics = Metrics()
        self.works = Works(cascade, self.egress, self.metrics, group, self.events.append)

    def reply(self, request: str = "r", audio_format: AudioFormat = PCM) -> None:
        asked = ReplyRequest(request, (), Urgency.DRAFT, speak=True, voice="default")
        self.works.reply(asked, audio_format)

    async def settle(self) -> None:
        while self.works.is_busy:
            self.works.changed.clear()
            await self.works.changed.wait()


def work(cascade: ScriptedCascade, script: Callable[[Rig], Awaitable[None]]) -> Rig:
    async def main() -> Rig:
        async with asyncio.TaskGroup() as group:
            rig = Rig(group, cascade)
            await script(rig)
            await rig.settle()
            rig.works.close()
        assert rig.works.open_requests == 0
        assert cascade.active == 0
        return rig

    return run_virtual(main(), limit_s=600)


def test_a_reply_becomes_events_in_order() -> None:
    cascade = ScriptedCascade(
        reply=[
            TextDelta("Good "),
            SpeechDelta(tone(100, 22_050), 22_050, 5),
            TextDelta("day."),
            ToolCallDelta(0, "call_1", "look", "{}"),
            SpeechDelta(tone(100, 22_050), 22_050, 9),
            Finished(FinishReason.TOOL_CALLS, Usage(7, 3, 5)),
        ]
    )

    async def script(rig: Rig) -> None:
        rig.reply()

    rig = work(cascade, script)
    kinds = [type(event) for event in rig.events]
    assert kinds == [
        *(ReplyText, ReplyAudio, ReplyText, ReplyToolCall),
        *(ReplyAudio, ReplyAudio, ReplyFinished),
    ]
    assert rig.events[-1] == ReplyFinished("r", "tool_calls", 7, 3, 5)
    audio = [event for event in rig.events if isinstance(event, ReplyAudio)]
    assert [event.text_end for event in audio] == [5, 9, 9]
    # Nothing of it is lost between the stage's rate and the wire's.
    assert sum(event.samples for event in audio) == round(4410 * 24_000 / 22_050)
    assert rig.egress.open_replies == 1  # waits to be played


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StageError("tts_failed", "no voice"), "tts_failed"),
        (ValueError("a bug"), "internal_error"),
    ],
)
def test_a_failing_reply_keeps_what_was_made(error: Exception, code: str) -> None:
    cascade = ScriptedCascade(reply=spoken_reply("Good day.")[:2])
    cascade.reply_error = error

    async def script(rig: Rig) -> None:
        rig.reply()

    rig = work(cascade, script)
    failed = rig.events[-1]
    assert isinstance(failed, ReplyFailed) and failed.code == code
    assert "a bug" not in failed.message  # the inside of the server is not for clients
    assert sum(e.samples for e in rig.events if isinstance(e, ReplyAudio)) == 48_000
    rig.egress.attach(PlayReply("r", "voice", 0, "resp", "item", 0, 0))
    assert rig.egress.peek(0) is not None
    assert rig.metrics.counts[Count.WORK_FAILED] == 1


def test_a_reply_without_an_end_has_failed() -> None:
    async def script(rig: Rig) -> None:
        rig.reply()

    rig = work(ScriptedCascade(reply=[TextDelta("Good")]), script)
    failed = rig.events[-1]
    assert isinstance(failed, ReplyFailed) and failed.code == "reply_failed"


def test_nothing_follows_an_abort() -> None:
    cascade = ScriptedCascade()

    async def script(rig: Rig) -> None:
        cascade.reply_gate = asyncio.Event()
        rig.reply("not yet opened")
        rig.works.abort("not yet opened")
        rig.reply("opened")
        await asyncio.sleep(1)
        rig.works.abort("opened")
        rig.works.abort("opened")
        cascade.reply_gate.set()
        await asyncio.sleep(1)

    rig = work(cascade, script)
    assert rig.events == []
    assert [stream.is_aborted for stream in cascade.streams] == [True]
    assert rig.metrics.counts[Count.WORK_ABORTED] == 2


def test_a_reply_may_be_aborted_by_its_own_output() -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            rig = Rig(group, cascade)

            def deliver(event: Event) -> None:
                rig.events.append(event)
                works.abort("r")
                rig.egress.drop("r")

            works = Works(cascade, rig.egress, rig.metrics, group, deliver)
            works.reply(ReplyRequest("r", (), Urgency.DRAFT, True, "default"), PCM)
        assert rig.events == [ReplyText("r", "Good day to you.")]
        assert cascade.active == 0

    cascade = ScriptedCascade()
    run_virtual(main())


def test_a_hurry_before_the_stream_is_open_is_not_lost() -> None:
    cascade = ScriptedCascade()

    async def script(rig: Rig) -> None:
        rig.reply()
        rig.works.hurry("r", Urgency.FIRST_AUDIO)
        rig.works.hurry("r", Urgency.FIRST_AUDIO)
        rig.works.hurry("unknown", Urgency.STEADY)

    work(cascade, script)
    assert cascade.streams[0].urgencies == [Urgency.FIRST_AUDIO]


def test_speech_waits_for_its_listener_and_what_is_written_does_not() -> None:
    piece = SpeechDelta(tone(1000), 24_000, 1)
    cascade = ScriptedCascade(
        reply=[
            TextDelta("One two."),
            *[piece] * 3,
            TextDelta("Three."),
            ToolCallDelta(0, "call_1", "look", "{}"),
            Written(FinishReason.TOOL_CALLS),
            *[piece] * 2,
            Finished(FinishReason.TOOL_CALLS),
        ]
    )

    async def script(rig: Rig) -> None:
        rig.reply()
        await rig.settle()
        kinds = [type(event) for event in rig.events]
        assert kinds[:4] == [ReplyText, ReplyAudio, ReplyAudio, ReplyAudio]
        assert kinds[4:] == [ReplyText, ReplyToolCall, ReplyWritten]
        assert rig.works.open_requests == 1 and not rig.works.is_busy
        assert cascade.streams[0].holds == [True] * 2
        rig.egress.attach(PlayReply("r", "voice", 0, "resp", "item", 0, 0))
        now_ms = 0.0
        while rig.egress.has_room("r") is False:
            assert len(rig.events) == 7
            frame = rig.egress.peek(now_ms)
            assert frame is not None and rig.egress.commit(frame, now_ms)
            now_ms += 40
        assert now_ms == 1000
        await rig.settle()
        kinds = [type(event) for event in rig.events]
        assert kinds[7:] == [ReplyAudio], "so much more is made as there is room for"

    work(cascade, script)
    assert cascade.streams[0].is_aborted


def test_a_listener_is_never_far_behind_what_is_made() -> None:
    """A monologue of a minute, played in virtual time by the real cascade with a fast voice."""
    count = 200
    text = "There is so much more to say now. " * (count // 8)
    cascade = FakeCascade(writer=FakeWriter([words(text)]), speaker=FakeSpeaker(ms_per_word=300))
    rests: list[float] = []
    ahead: list[float] = []  # of what the voice has made

    async def main() -> None:
        await cascade.start(lambda line: None)
        try:
            async with asyncio.TaskGroup() as group:
                rig = Rig(group, cascade)
                asked = ReplyRequest("r", (), Urgency.FIRST_AUDIO, True, "tone")
                rig.works.reply(asked, PCM)
                await rig.settle()
                rig.egress.attach(PlayReply("r", "voice", 0, "resp", "item", 0, 0))
                now_ms, played = 0.0, 0
                while not rig.egress.take_drained():
                    made = sum(e.samples for e in rig.events if isinstance(e, ReplyAudio))
                    rests.append((made - played) / 24_000)
                    ahead.append(cascade.speaker.made_words * 0.3 - played / 24_000)
                    frame = rig.egress.peek(now_ms)
                    assert frame is not None, "the listener heard a gap"
                    assert rig.egress.commit(frame, now_ms)
                    played += len(frame.samples)
                    now_ms += 40
                    await rig.settle()
                assert isinstance(rig.events[-1], ReplyFinished)
                assert played == count * 300 * 24
        finally:
            await cascade.close()

    run_virtual(main(), limit_s=600)
    assert max(rests) < 3.5 and min(rests[:-60]) >= 1.9
    assert max(ahead) < 6


def test_a_transcript_comes_whole() -> None:
    cascade = ScriptedCascade(texts=["good day"])

    async def script(rig: Rig) -> None:
        rig.works.recognise(RecogniseRequest("h"), QUIET)

    assert work(cascade, script).events == [TranscriptFinal("h", "good day")]
    assert np.array_equal(cascade.heard[0], QUIET)


def test_a_recogniser_that_hangs_fails_in_a_bound() -> None:
    cascade = ScriptedCascade()

    async def script(rig: Rig) -> None:
        cascade.recognise_gate = asyncio.Event()
        rig.works.recognise(RecogniseRequest("h"), QUIET)

    failed = work(cascade, script).events[0]
    assert isinstance(failed, TranscriptFailed) and failed.code == "stage_timeout"
    assert cascade.streams[0].is_aborted


def test_questions_to_the_judge_are_open_until_answered() -> None:
    cascade = ScriptedCascade(probability=0.25)

    async def script(rig: Rig) -> None:
        gate = cascade.judge_gate = asyncio.Event()
        rig.works.judge("late", QUIET, position=900)
        rig.works.judge("early", QUIET, position=500)
        assert rig.works.oldest_question == 500
        rig.works.abort("early")
        assert rig.works.oldest_question == 900
        gate.set()
        await rig.settle()
        assert rig.works.oldest_question is None
        cascade.judge_gate = asyncio.Event()
        rig.works.judge("never", QUIET, position=1000)

    events = work(cascade, script).events
    assert events[0] == JudgeAnswered("late", 0.25)
    assert isinstance(events[1], JudgeFailed) and events[1].code == "stage_timeout"
