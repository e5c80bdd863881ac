"""Replies that fail before their first word, or end without one: the caller is told aloud."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pipelines.courtesy import Courtesy
from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.writer import Call, End, Fail, Say, Stall, Step
from pipelines.runtime.ticket import Ticket
from pipelines.types import (
    Finished,
    FinishReason,
    SpeakRequest,
    SpeechDelta,
    StageError,
    ToolCallDelta,
    Urgency,
)
from tests.pipelines.heard_reply import (
    APOLOGY,
    BROKEN,
    EMPTY,
    Heard,
    pushed,
    request,
    with_cascade,
)


@pytest.mark.parametrize("after_ms", [0, 500, 5000])
def test_a_writer_that_fails_before_its_first_word_is_excused_aloud(after_ms: int) -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.error is BROKEN
        assert heard.text == APOLOGY
        filler_words = 2 if after_ms > 2000 else 0
        ends = [end for _, end in heard.speech]
        assert len(ends) == filler_words + len(APOLOGY.split())
        assert ends[:filler_words] == [0] * filler_words
        assert ends[filler_words] > 0 and ends[-1] == len(APOLOGY)

    with_cascade([Fail(BROKEN, after_ms)], body)


def test_a_writer_that_never_begins_gets_a_filler_and_then_an_apology() -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.error is not None and heard.error.code == "stage_timeout"
        assert pushed(cascade) == ["One moment.", APOLOGY]
        assert heard.text == APOLOGY
        assert heard.speech[0][0] == pytest.approx(2000)
        assert heard.speech[-1][0] == pytest.approx(20_000)

    with_cascade([Stall()], body)


def test_a_writer_that_hangs_is_given_up_before_the_apology_is_heard() -> None:
    """It may hold what the voice needs: a processor, or a place at a busy server."""

    async def body(cascade: FakeCascade) -> None:
        stream = cascade.reply(request())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(Heard().listen(stream))
            await asyncio.sleep(20.5)
            assert cascade.speaker.active == 1 and cascade.writer.active == 0

    with_cascade([Stall()], body, FakeSpeaker(real_time_factor=1.0))


def test_a_written_reply_that_fails_says_nothing() -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request(speak=False)))
        assert heard.error is BROKEN and heard.outputs == []

    with_cascade([Fail(BROKEN, 100)], body)


def test_a_draft_that_fails_is_silent_and_one_that_was_adopted_is_not() -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request(urgency=Urgency.DRAFT)))
        assert heard.error is BROKEN and heard.outputs == []
        assert not cascade.speaker.pushed
        stream = cascade.reply(request(urgency=Urgency.DRAFT))
        stream.hurry(Urgency.FIRST_AUDIO)
        heard = await Heard().listen(stream)
        assert heard.error is BROKEN and heard.text == APOLOGY

    with_cascade([Fail(BROKEN, 100)], body)


def test_a_voice_that_has_failed_makes_no_apology() -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.error is not None and heard.error.code == "tts_failed"
        assert heard.text == "So it is."

    with_cascade([Say("So it is."), Stall()], body, FakeSpeaker(fail_after_words=0))


def test_a_voice_that_fails_before_it_was_given_a_word_makes_no_apology() -> None:
    class Mute(FakeSpeaker):
        async def _speak(
            self, request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
        ) -> AsyncIterator[SpeechDelta]:
            raise StageError("tts_failed", "no voice")
            yield

    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.error is not None and heard.error.code == "tts_failed"
        assert heard.outputs == []

    with_cascade([Stall()], body, Mute())


def test_a_voice_that_fails_in_the_apology_leaves_the_first_cause() -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.error is BROKEN and heard.speech == []

    with_cascade([Fail(BROKEN, 100)], body, FakeSpeaker(fail_after_words=0))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("I can help you with that, if y", "I can help you with that,"),
        ("It is over. There are 3.", "It is over."),  # perhaps 3.5
        ("It is over.", "It is over."),
        ("Well, no", "Well,"),
    ],
)
def test_a_failure_in_mid_speech_is_spoken_up_to_the_last_clause_end(
    written: str, said: str
) -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.error is BROKEN and heard.text == written
        assert " ".join(pushed(cascade)) == said
        assert heard.last_text_end == pytest.approx(len(said), abs=1)

    with_cascade([Say(written), Fail(BROKEN)], body)


@pytest.mark.parametrize("written", ["Supercali", "🙂"])
def test_a_failure_before_anything_could_be_said_is_excused_behind_what_was_written(
    written: str,
) -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.error is BROKEN
        assert heard.text == f"{written}… {APOLOGY}"
        assert heard.last_text_end == len(heard.text)
        assert heard.speech[0][1] > len(written)

    with_cascade([Say(written), Fail(BROKEN)], body)


# ---- empty replies -------------------------------------------------------------------------------


@pytest.mark.parametrize("script", [[], [Say("")], [Say(" \n")], [End(FinishReason.LENGTH)]])
def test_a_reply_without_a_word_gets_one(script: list[Step]) -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.error is None and heard.reason is not None
        assert heard.text.strip() == EMPTY
        assert len(heard.speech) == len(EMPTY.split())
        assert heard.last_text_end == len(heard.text)

    with_cascade(script, body)


@pytest.mark.parametrize("text", ["🙂", "🎉🎉", "***", "---\n\n***\n"])
def test_what_can_only_be_read_stays_the_text_of_a_reply_that_is_answered_aloud(text: str) -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.error is None and heard.reason is FinishReason.STOP
        assert heard.text == text
        assert pushed(cascade) == [EMPTY]
        assert [end for _, end in heard.speech] == [0] * len(EMPTY.split())
        assert heard.last_text_end == len(text)

    with_cascade([Say(text)], body)


def test_a_call_or_a_written_reply_needs_no_word() -> None:
    async def call(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.reason is FinishReason.TOOL_CALLS and heard.text == ""
        assert [type(output) for _, output in heard.outputs] == [ToolCallDelta, Finished]

    with_cascade([Call("look", "{}")], call)

    async def written(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request(speak=False)))
        assert [type(output) for _, output in heard.outputs] == [Finished]

    with_cascade([], written)


def test_an_empty_reply_after_a_filler_keeps_the_order() -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert pushed(cascade) == ["One moment.", EMPTY]
        assert heard.text == "🙂" and heard.reason is FinishReason.STOP

    with_cascade([Say("🙂", after_ms=3000)], body)


def test_a_voice_that_fails_in_the_last_word_fails_the_reply() -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.error is not None and heard.error.code == "tts_failed"

    with_cascade([Say("🙂")], body, FakeSpeaker(fail_after_words=2))


def test_silence_is_kept_where_it_is_wanted() -> None:
    async def failing(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.error is BROKEN and heard.outputs == []

    async def empty(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert [type(output) for _, output in heard.outputs] == [Finished]

    with_cascade([Fail(BROKEN)], failing, courtesy=Courtesy())
    with_cascade([], empty, courtesy=Courtesy())


@pytest.mark.parametrize("turns", range(8))
def test_an_abort_at_the_moment_of_an_apology_is_no_failure(
    turns: int, caplog: pytest.LogCaptureFixture
) -> None:
    """One of the reply's tasks may go on between the abort and its own cancellation."""

    async def body(cascade: FakeCascade) -> None:
        stream = cascade.reply(request())
        heard = Heard()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(heard.listen(stream))
            await asyncio.sleep(0.5)
            for _ in range(turns):
                await asyncio.sleep(0)
            stream.abort()
        assert heard.error is None

    with_cascade([Fail(BROKEN, 500)], body)
    assert not caplog.records
