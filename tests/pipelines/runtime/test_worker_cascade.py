"""A whole reply whose writer and voice are processes of their own."""

from __future__ import annotations

import os
import signal
from typing import Any, cast

import pytest

from pipelines.cascade import CascadeOptions, VoiceCascade
from pipelines.fakes.hearing import FakeDetectorStage, FakeJudge, FakeRecogniser
from pipelines.ports import ReplyStream
from pipelines.reply import ReplyTiming
from pipelines.types import (
    Finished,
    Message,
    ReplyRequest,
    SpeechDelta,
    StageError,
    TextDelta,
    Urgency,
)
from tests.pipelines.runtime.worker_driving import eventually, is_alive, pid_of, stage_of
from tests.pipelines.waiting import check

TEXT = "I can help you with that, if you tell me more. What does it say?"
SLOW = {"ms_per_word": 50.0, "real_time_factor": 1.0}


class Talk:
    """A cascade with two workers."""

    def __init__(self, voice: dict[str, object] | None = None) -> None:
        self.writer = stage_of("writer", {"text": TEXT}, name="llm")
        self.voice = stage_of("speaker", voice, name="tts")
        self.cascade = VoiceCascade(
            FakeDetectorStage(),
            FakeJudge(),
            FakeRecogniser(),
            self.writer,
            self.voice,
            CascadeOptions(("tone",), "script", ReplyTiming()),
        )

    def reply(self) -> ReplyStream:
        messages = (Message("user", "hi"),)
        return self.cascade.reply(ReplyRequest("r", messages, Urgency.FIRST_AUDIO, True, "tone"))


async def heard(stream: ReplyStream) -> list[Any]:
    return [output async for output in stream]


def test_a_reply_is_written_and_spoken_in_two_processes() -> None:
    async def main() -> None:
        talk = Talk()
        lines: list[str] = []
        await talk.cascade.start(lines.append)
        pids = [pid_of(talk.writer), pid_of(talk.voice)]
        outputs = await heard(talk.reply())
        assert "".join(o.text for o in outputs if isinstance(o, TextDelta)) == TEXT
        speech = [o for o in outputs if isinstance(o, SpeechDelta)]
        assert sum(len(o.samples) for o in speech) == 24 * 10 * len(TEXT.split())
        assert isinstance(outputs[-1], Finished)
        assert {stats.name for stats in talk.cascade.stats} >= {"llm", "tts"}
        await eventually(lambda: talk.cascade.active == 0)
        await talk.cascade.close()
        assert not any(map(is_alive, pids))

    check(main)


def test_a_barge_in_ends_the_work_in_both() -> None:
    async def main() -> None:
        talk = Talk(cast("dict[str, object]", SLOW))
        await talk.cascade.start(lambda line: None)
        stream = talk.reply()
        async for output in stream:
            if isinstance(output, SpeechDelta):
                stream.abort()
        await eventually(lambda: talk.cascade.active == 0)
        assert talk.voice.abort_latency.count == 1
        await talk.cascade.close()

    check(main)


def test_a_voice_that_dies_fails_its_reply_and_speaks_the_next() -> None:
    async def main() -> None:
        talk = Talk(cast("dict[str, object]", SLOW))
        await talk.cascade.start(lambda line: None)
        outputs = aiter(talk.reply())
        while not isinstance(await anext(outputs), SpeechDelta):
            pass
        os.kill(pid_of(talk.voice), signal.SIGKILL)
        with pytest.raises(StageError, match="tts stage was ended by SIGKILL"):
            assert not [output async for output in outputs if isinstance(output, Finished)]
        again = await heard(talk.reply())
        assert isinstance(again[-1], Finished)
        assert any(isinstance(output, SpeechDelta) for output in again)
        assert talk.voice.restarts == 1 and talk.writer.restarts == 0
        await talk.cascade.close()

    check(main)
