"""Fillers: sound outside a reply's text, while its first words are slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import numpy as np
import pytest

from pipelines.courtesy import Courtesy
from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.writer import Call, Say, Stall, Step, words
from pipelines.runtime.ticket import Ticket
from pipelines.types import (
    FinishReason,
    SpeakRequest,
    SpeechDelta,
    StageError,
    Urgency,
    VoiceSample,
)
from tests.pipelines.heard_reply import (
    COURTESY,
    FILLERS,
    WORD_SAMPLES,
    Heard,
    pushed,
    request,
    with_cascade,
)


def test_a_slow_first_word_is_bridged_by_a_filler_outside_the_text() -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.text == "So it is, my friend." and heard.reason is FinishReason.STOP
        assert pushed(cascade)[0] == "One moment."
        times = [at_ms for at_ms, _ in heard.speech]
        assert times == pytest.approx([2000, 2000, *[5000] * 5])
        ends = [end for _, end in heard.speech]
        assert ends[:2] == [0, 0] and ends[-1] == len(heard.text)
        assert ends == sorted(ends)

    with_cascade([Say("So it is, my friend.", after_ms=5000)], body)


@pytest.mark.parametrize("first", [Say("So it is."), Call("look", "{}")])
def test_there_is_no_filler_once_text_or_a_call_has_come(first: Step) -> None:
    async def body(cascade: FakeCascade) -> None:
        await Heard().listen(cascade.reply(request()))
        assert "One moment." not in pushed(cascade)

    with_cascade([first, Say(" And so on.", after_ms=10_000)], body)


@pytest.mark.parametrize("speak", [True, False])
def test_a_fast_or_silent_reply_has_no_filler(speak: bool) -> None:
    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request(speak)))
        assert heard.text == "Yes." and "One moment." not in pushed(cascade)

    with_cascade([Say("Yes.", after_ms=1900 if speak else 9000)], body)


def test_no_phrases_or_no_time_mean_no_filler() -> None:
    async def body(cascade: FakeCascade) -> None:
        await Heard().listen(cascade.reply(request()))
        assert pushed(cascade) == ["Yes."]

    for courtesy in (Courtesy(2000, ()), Courtesy(None, FILLERS), Courtesy(2000, ("🙂",))):
        with_cascade([Say("Yes.", after_ms=9000)], body, courtesy=courtesy)


def test_fillers_take_turns_and_are_the_same_in_every_replay() -> None:
    said = [COURTESY.filler(request(turns=turns)) for turns in (1, 2, 3, 1)]
    assert said == [FILLERS[0], FILLERS[1], FILLERS[0], FILLERS[0]]


def test_text_that_comes_while_the_filler_is_made_takes_its_place() -> None:
    """The voice needs 500 ms for its first sound: nobody has heard the filler yet."""

    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert len(heard.speech) == 3 and heard.speech[0][1] > 0
        assert cascade.speaker.abort_latency.count == 1

    speaker = FakeSpeaker(first_ms=500)
    with_cascade([Say("So it is.", after_ms=2300)], body, speaker)


def test_a_filler_that_has_begun_is_finished_while_the_text_is_made_already() -> None:
    """Both voices work at the same time, each at 200 ms a word; the filler's sound leaves first."""

    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request(turns=2)))
        assert [end == 0 for _, end in heard.speech] == [True] * 3 + [False] * 3
        times = [at_ms for at_ms, _ in heard.speech]
        # The text comes at 2250: its first word, made at 2450, waits for the filler's last.
        assert times == pytest.approx([2200, 2400, 2600, 2600, 2650, 2850])

    speaker = FakeSpeaker(ms_per_word=400, real_time_factor=0.5)
    with_cascade([Say("So it is.", after_ms=2250)], body, speaker)


def test_a_copied_voice_says_the_filler_too() -> None:
    sample = VoiceSample(b"RIFF", "hello")

    async def body(cascade: FakeCascade) -> None:
        await Heard().listen(cascade.reply(replace(request(), sample=sample)))
        assert [spoken.sample for spoken in cascade.speaker.requests] == [sample, sample]

    with_cascade([Say("So it is.", after_ms=9000)], body)


def test_a_draft_waits_in_silence_until_somebody_listens() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.reply(request(urgency=Urgency.DRAFT))
        heard = Heard()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(heard.listen(stream))
            await asyncio.sleep(4)
            assert not cascade.speaker.pushed
            stream.hurry(Urgency.FIRST_AUDIO)
        assert [at_ms for at_ms, _ in heard.speech[:2]] == pytest.approx([6000, 6000])
        assert pushed(cascade)[0] == "One moment."

    with_cascade([Say("So it is.", after_ms=9000)], body)


@pytest.mark.parametrize("after_ms", [1000, 2100, 2400, 8000])
def test_an_abort_ends_a_filler_at_every_moment(after_ms: int) -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.reply(request())
        heard = Heard()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(heard.listen(stream))
            await asyncio.sleep(after_ms / 1000)
            stream.abort()
            count = len(heard.outputs)
        assert len(heard.outputs) == count and heard.error is None

    with_cascade([Stall()], body, FakeSpeaker(first_ms=300, real_time_factor=0.5))


def test_an_abort_and_a_hurry_reach_a_filler_in_the_same_call() -> None:
    tickets: dict[str, Ticket] = {}

    class Voice(FakeSpeaker):
        async def _speak(
            self, request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
        ) -> AsyncIterator[SpeechDelta]:
            tickets[request.request_id] = ticket
            async for _ in inputs:
                await asyncio.sleep(60)
                yield SpeechDelta(np.ones(100, np.float32), 16_000, 0)

    async def body(cascade: FakeCascade) -> None:
        stream = cascade.reply(request())
        await asyncio.sleep(3)
        stream.hurry(Urgency.RUNNING_DRY)
        assert tickets["r-aside"].urgency is Urgency.RUNNING_DRY
        stream.abort()
        assert tickets["r-aside"].aborted

    with_cascade([Stall()], body, Voice())


def test_a_voice_that_fails_in_a_filler_ends_a_reply_only_if_it_fails_again() -> None:
    class FailsOnce(FakeSpeaker):
        """Its first request fails, which is the filler's: the reply's own is still empty."""

        async def _speak(
            self, request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
        ) -> AsyncIterator[SpeechDelta]:
            async for text in inputs:
                if request.request_id.endswith("-aside"):
                    raise StageError("tts_failed", "hoarse")
                yield SpeechDelta(np.ones(100, np.float32), 16_000, len(text))

    async def body(cascade: FakeCascade) -> None:
        heard = await Heard().listen(cascade.reply(request()))
        assert heard.error is None and heard.text == "So it is."
        assert len(heard.speech) == 1

    with_cascade([Say("So it is.", after_ms=5000)], body, FailsOnce())


def test_the_words_of_a_reply_are_the_same_with_and_without_a_filler() -> None:
    """The filler shifts the sound, and nothing else."""

    def reply(courtesy: Courtesy) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []

        async def body(cascade: FakeCascade) -> None:
            heard = await Heard().listen(cascade.reply(request()))
            found.extend(
                (len(output.samples), output.text_end)
                for _, output in heard.outputs
                if isinstance(output, SpeechDelta)
            )

        script = words("It costs 12 dollars, or so they say. **Really?**", 3000, 40)
        with_cascade(script, body, courtesy=courtesy)
        return found

    without, with_filler = reply(Courtesy()), reply(COURTESY)
    assert with_filler[:2] == [(WORD_SAMPLES, 0)] * 2
    assert with_filler[2:] == without
