"""How a text that somebody pushes ends early, and how it waits for its voice and its reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.virtual_time import run_virtual
from pipelines.reply import ReplyTiming
from pipelines.runtime.ticket import Ticket
from pipelines.speech import UNSAID_LIMIT_CHARS
from pipelines.types import SpeakRequest, SpeechDelta, StageError
from tests.pipelines.test_spoken_text import (
    REQUEST,
    TEXT,
    given_to_voice,
    hear,
    pieces_of,
    reaped,
    turns,
    with_cascade,
)
from tests.pipelines.waiting import UNHURRIED

SENTENCE = "and so it went on for a while, "


@settings(UNHURRIED, max_examples=100)
@given(
    abort_after_ms=st.integers(0, 2500),
    turn_count=st.integers(0, 12),
    cuts=st.lists(st.integers(0, len(TEXT)), max_size=8),
    fail_after_words=st.none() | st.sampled_from([0.0, 0.5, 3.0]),
)
def test_nothing_comes_after_an_abort_and_nothing_is_left(
    abort_after_ms: int, turn_count: int, cuts: list[int], fail_after_words: float | None
) -> None:
    async def main() -> None:
        speaker = FakeSpeaker(first_ms=60, real_time_factor=0.3, fail_after_words=fail_after_words)
        cascade = FakeCascade(speaker=speaker)
        await cascade.start(lambda line: None)
        stream = cascade.speak(REQUEST)
        heard: list[SpeechDelta] = []

        async def write() -> None:
            for piece in pieces_of(TEXT, cuts):
                await stream.push(piece)
                await asyncio.sleep(0.2)
            await stream.flush()
            await stream.finish()

        async def read() -> None:
            try:
                async for delta in stream:
                    heard.append(delta)  # noqa: PERF401 (what came before a failure counts)
            except StageError:
                pass

        async def abort() -> None:
            await asyncio.sleep(abort_after_ms / 1000)
            await turns(turn_count)
            stream.abort()
            count, made = len(heard), speaker.made_words
            await reaped(cascade)
            assert (len(heard), speaker.made_words) == (count, made)

        async with asyncio.TaskGroup() as tasks:
            for job in (write(), read(), abort()):
                tasks.create_task(job)
        await cascade.close()
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main())


def test_an_abort_reaches_the_voice_in_the_very_call() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        await stream.push(SENTENCE)
        await turns()
        (voice,) = cascade.speaker._streams  # what the voice itself goes by
        assert not voice.ticket.aborted
        stream.abort()
        assert voice.ticket.aborted
        assert await hear(stream) == []
        await reaped(cascade)
        assert cascade.speech_abort_latency.count == 1
        assert cascade.reply_abort_latency.count == 0
        # A dead stream ignores what it is given.
        await stream.push(SENTENCE)
        await stream.flush()
        await stream.finish()

    with_cascade(body)


def test_an_abort_before_the_first_step_opens_no_voice() -> None:
    async def body(cascade: FakeCascade) -> None:
        cascade.speak(REQUEST).abort()
        await turns()
        assert not cascade.speaker.requests

    with_cascade(body)


@pytest.mark.parametrize("fail_after_words", [0.0, 2.0, 2.5])
def test_a_voice_that_fails_ends_the_stream_after_what_it_said(fail_after_words: float) -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        await stream.push(SENTENCE)
        heard: list[SpeechDelta] = []
        with pytest.raises(StageError, match="scripted voice fails") as caught:
            async for delta in stream:
                heard.append(delta)  # noqa: PERF401 (what came before a failure counts)
        assert caught.value.code == "tts_failed"
        assert sum(len(delta.samples) for delta in heard) == fail_after_words * 7200
        # Whoever still pushes is not kept waiting.
        for _ in range(3):
            await stream.push("x" * UNSAID_LIMIT_CHARS)
        await stream.finish()

    with_cascade(body, FakeCascade(speaker=FakeSpeaker(fail_after_words=fail_after_words)))


class Brief(FakeSpeaker):
    """Ends by itself after its first words, whatever is left to say."""

    async def _speak(
        self, request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
    ) -> AsyncIterator[SpeechDelta]:
        async for delta in super()._speak(request, inputs, ticket):
            yield delta
            return


def test_a_voice_that_ends_before_its_text_ends_the_stream() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        await stream.push(SENTENCE)
        heard = await hear(stream)
        assert heard[0].text_end == len("and ")
        await stream.push(SENTENCE)

    with_cascade(body, FakeCascade(speaker=Brief()))


class Mute(FakeSpeaker):
    """Takes everything and says nothing."""

    async def _speak(
        self, request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
    ) -> AsyncIterator[SpeechDelta]:
        async for _ in inputs:
            await asyncio.Event().wait()
            yield SpeechDelta(self._tone(1), 24_000, 0)


def test_a_voice_that_hangs_is_ended() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        await stream.push(SENTENCE)
        await stream.finish()
        with pytest.raises(StageError) as caught:
            await hear(stream)
        assert caught.value.code == "stage_timeout"
        assert asyncio.get_running_loop().time() == pytest.approx(5)

    with_cascade(body, FakeCascade(speaker=Mute(), timing=ReplyTiming(stall_timeout_ms=5_000)))


def test_a_writer_may_take_any_time() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)

        async def write() -> None:
            await asyncio.sleep(600)
            await stream.push("Good day.")
            await stream.flush()
            await asyncio.sleep(600)
            await stream.push("Good night.")
            await stream.finish()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(write())
            assert len(await hear(stream)) == 4

    with_cascade(body)


def test_a_voice_whose_reader_is_away_makes_a_second_or_two() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        await stream.push(SENTENCE * 20)
        await stream.finish()
        await asyncio.sleep(60)
        assert 4 <= cascade.speaker.made_words <= 10  # of 0.3 s each
        assert len(await hear(stream)) == 160

    with_cascade(body)


# ---- back-pressure ---------------------------------------------------------------------------


def test_a_push_waits_while_the_voice_is_far_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.spoken_text.UNSAID_LIMIT_CHARS", 900)
    text = SENTENCE * 29

    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        pushed = 0
        heard: list[SpeechDelta] = []

        async def write() -> None:
            nonlocal pushed
            for _ in range(20):
                await stream.push(text)
                pushed += len(text)
            await stream.flush()
            await stream.finish()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(write())
            await asyncio.sleep(10)
            assert pushed == len(text)  # nobody listens: the second one waits
            async for delta in stream:
                heard.append(delta)
                # What is held back until it is worth speaking comes on top, and what was made.
                assert pushed - delta.text_end < 900 + 400
        assert heard[-1].text_end == pushed == 20 * len(text)
        assert len(heard) == 20 * 29 * 8

    with_cascade(body)


def test_a_push_that_waits_ends_with_the_abort() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        await stream.push("a" + " b" * (UNSAID_LIMIT_CHARS // 2 - 1))
        async with asyncio.TaskGroup() as tasks:
            for wait in (stream.push("and more " * 100), stream.flush(), stream.finish()):
                tasks.create_task(wait)
            await asyncio.sleep(1)
            assert cascade.active > 0
            stream.abort()
            async with asyncio.timeout(0.001):
                assert await hear(stream) == []

    with_cascade(body)


def test_a_push_beyond_all_bounds_is_refused_and_the_stream_goes_on() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        with pytest.raises(StageError, match="smaller pieces") as caught:
            await stream.push("x" * (UNSAID_LIMIT_CHARS + 1))
        assert caught.value.code == "reply_too_long"
        await stream.push("Good day.")
        await stream.finish()
        assert len(await hear(stream)) == 2

    with_cascade(body)


def test_text_without_sound_keeps_nobody_waiting() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        block = "```\n" + "x = 1\n" * 900 + "```\n"
        for _ in range(40):
            await stream.push(block)
        await stream.finish()
        heard = await hear(stream)
        assert heard[-1].text_end == 40 * len(block) > 2 * UNSAID_LIMIT_CHARS
        assert given_to_voice(cascade)[0].startswith("The code is on the screen")

    with_cascade(body)


def test_a_writer_that_lets_nobody_run_is_slowed_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.runtime.loop_stage.INPUT_LIMIT", 1_500)

    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        for _ in range(5_000):
            await stream.push(" ")
        await stream.push("So.")
        await stream.finish()
        assert [delta.text_end for delta in await hear(stream)] == [5_003]

    with_cascade(body)


def test_requests_end_with_the_cascade() -> None:
    async def main() -> None:
        cascade = FakeCascade()
        await cascade.start(lambda line: None)
        streams = [cascade.speak(REQUEST) for _ in range(4)]
        for stream in streams:
            await stream.push(SENTENCE)
        await turns()
        await cascade.close()
        assert cascade.active == 0
        assert [await hear(stream) for stream in streams] == [[]] * 4
        late = cascade.speak(REQUEST)
        await late.push(SENTENCE)
        with pytest.raises(StageError, match="stopping"):
            await hear(late)

    run_virtual(main())
