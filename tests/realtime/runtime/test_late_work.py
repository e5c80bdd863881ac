"""What a conversation gives up because nothing came of it, the log tells."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from pipelines.types import ReplyOutput, ReplyRequest, SpeechDelta, StageError, TextDelta
from realtime.runtime.session import SessionRuntime
from tests.realtime.runtime.stand_ins import (
    RATE_HZ,
    PipeTransport,
    ScriptedCascade,
    ScriptedStream,
    tone,
)
from tests.realtime.runtime.test_session_turns import say, serve


class Stalling(ScriptedCascade):
    """Its replies begin, and never go on."""

    def reply(self, request: ReplyRequest) -> ScriptedStream:
        async def script() -> AsyncIterator[ReplyOutput]:
            yield TextDelta("It is noon in")
            yield SpeechDelta(tone(400), RATE_HZ, 5)
            await asyncio.Event().wait()

        return ScriptedStream(self, script)


async def fail(transport: PipeTransport, _: SessionRuntime) -> None:
    await say(transport)
    failed = await transport.until("response.done")
    assert failed["response"]["status"] == "failed"


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_reply_that_stalls_in_the_middle(caplog: pytest.LogCaptureFixture) -> None:
    serve(Stalling(), fail)
    assert warnings(caplog) == [
        "session: reply_stalled: The reply stopped in the middle and gave nothing for 15 s."
    ]


def test_a_reply_that_never_begins(caplog: pytest.LogCaptureFixture) -> None:
    cascade = ScriptedCascade()
    cascade.reply_gate = asyncio.Event()
    serve(cascade, fail)
    (told,) = warnings(caplog)
    assert told.startswith("session: reply_timeout: The language model gave nothing")


def test_words_that_are_never_heard(caplog: pytest.LogCaptureFixture) -> None:
    cascade = ScriptedCascade()
    cascade.recognise_gate = asyncio.Event()
    serve(cascade, fail)
    assert "session: transcript_timeout: The recogniser gave no transcript" in caplog.text


def test_what_a_stage_reports_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    cascade = ScriptedCascade(reply=[])
    cascade.reply_error = StageError("worker_crashed", "The process of the tts stage is gone.")
    serve(cascade, fail)
    assert set(warnings(caplog)) == {
        "The reply failed: worker_crashed: The process of the tts stage is gone."
    }
