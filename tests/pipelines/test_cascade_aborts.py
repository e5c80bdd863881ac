"""Aborts of a reply at every moment, against everything that can happen at that moment."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.virtual_time import run_virtual
from pipelines.fakes.writer import Call, Fail, FakeWriter, Say, Stall, Step, words
from pipelines.types import (
    Finished,
    Message,
    ReplyOutput,
    ReplyRequest,
    StageError,
    Urgency,
)
from tests.pipelines.waiting import UNHURRIED

TEXT = "I can help you with that, if you tell me more about it. What does it say?"
# A round of the loop that ends a whole tree: reply, its tasks, its parts, their generators.
REAPING_TURNS = 20

SCRIPTS: dict[str, list[Step]] = {
    "words": words(TEXT, 50, 40),
    "all at once": [Say(TEXT)],
    "calls": [*words("Let me look it up, ", 50, 40), Call("look", "{}", after_ms=300)],
    "fails": [*words("Let me look it up, ", 50, 40), Fail(StageError("llm_broke", "x"), 200)],
    "stalls": [*words("Let me look it up, ", 50, 40), Stall()],
}


def request(speak: bool = True) -> ReplyRequest:
    return ReplyRequest("r", (Message("user", "hi"),), Urgency.DRAFT, speak, "tone")


def cascade_of(script: list[Step], fail_after_words: float | None = None) -> FakeCascade:
    speaker = FakeSpeaker(first_ms=60, real_time_factor=0.3, fail_after_words=fail_after_words)
    return FakeCascade(writer=FakeWriter([script]), speaker=speaker)


async def reaped(cascade: FakeCascade) -> None:
    for _ in range(REAPING_TURNS):
        await asyncio.sleep(0)
    assert cascade.active == 0


@settings(UNHURRIED, max_examples=150)
@given(
    script=st.sampled_from(sorted(SCRIPTS)),
    abort_after_ms=st.integers(0, 2500),
    hurry_after_ms=st.none() | st.integers(0, 2500),
    turns=st.integers(0, 12),
    speak=st.booleans(),
    fail_after_words=st.none() | st.sampled_from([0.0, 0.5, 3.0]),
)
def test_nothing_comes_after_an_abort_and_nothing_is_left(
    script: str,
    abort_after_ms: int,
    hurry_after_ms: int | None,
    turns: int,
    speak: bool,
    fail_after_words: float | None,
) -> None:
    async def main() -> None:
        cascade = cascade_of(SCRIPTS[script], fail_after_words)
        await cascade.start(lambda line: None)
        stream = cascade.reply(request(speak))
        outputs: list[ReplyOutput] = []
        ended = asyncio.Event()

        async def read() -> None:
            try:
                async for output in stream:
                    outputs.append(output)  # noqa: PERF401 (what came before a failure counts)
            except StageError:
                pass
            ended.set()

        async def abort() -> None:
            await asyncio.sleep(abort_after_ms / 1000)
            for _ in range(turns):
                await asyncio.sleep(0)
            stream.abort()
            count = len(outputs)
            await reaped(cascade)
            assert len(outputs) == count
            assert ended.is_set()

        async def hurry() -> None:
            if hurry_after_ms is not None:
                await asyncio.sleep(hurry_after_ms / 1000)
                stream.hurry(Urgency.FIRST_AUDIO)

        async with asyncio.TaskGroup() as tasks:
            for job in (read(), abort(), hurry()):
                tasks.create_task(job)
        await cascade.close()
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main())


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_an_abort_after_each_output(script: str) -> None:
    async def count_outputs() -> int:
        cascade = cascade_of(SCRIPTS[script])
        await cascade.start(lambda line: None)
        count = 0
        try:
            async for _ in cascade.reply(request()):
                count += 1
        except StageError:
            pass
        await cascade.close()
        return count

    async def abort_after(number: int) -> None:
        cascade = cascade_of(SCRIPTS[script])
        await cascade.start(lambda line: None)
        stream = cascade.reply(request())
        outputs: list[ReplyOutput] = []
        if number == 0:
            stream.abort()
        async for output in stream:
            outputs.append(output)
            if len(outputs) == number:
                stream.abort()
        assert len(outputs) == number
        await reaped(cascade)
        await cascade.close()
        assert len(asyncio.all_tasks()) == 1

    total = run_virtual(count_outputs())
    assert total > 3
    for number in range(total + 1):
        run_virtual(abort_after(number))


def test_an_abort_kills_the_parts_in_the_same_call() -> None:
    async def main() -> None:
        cascade = cascade_of(SCRIPTS["words"])
        await cascade.start(lambda line: None)
        stream = cascade.reply(request())
        await asyncio.sleep(0.3)
        assert cascade.writer.active == cascade.speaker.active == 1
        stream.abort()
        stream.abort()
        await reaped(cascade)
        assert cascade.writer.abort_latency.count == 1
        assert cascade.speaker.abort_latency.count == 1
        assert cascade.reply_abort_latency.count == 1
        await cascade.close()

    run_virtual(main())


def test_a_reader_that_is_cancelled_can_still_abort() -> None:
    async def main() -> None:
        cascade = cascade_of(SCRIPTS["words"])
        await cascade.start(lambda line: None)
        stream = cascade.reply(request())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                async for _ in stream:
                    pass
        # A cancelled wait loses nothing: reading may also go on.
        outputs = [output async for output in stream]
        assert isinstance(outputs[-1], Finished)
        stream.abort()
        await reaped(cascade)
        await cascade.close()

    run_virtual(main())


def test_close_ends_replies_that_nobody_reads() -> None:
    async def main() -> None:
        cascade = cascade_of(SCRIPTS["words"])
        await cascade.start(lambda line: None)
        streams = [cascade.reply(request()) for _ in range(20)]
        await asyncio.sleep(0.2)
        await cascade.close()
        assert cascade.active == 0
        assert len(asyncio.all_tasks()) == 1
        for stream in streams:
            assert [output async for output in stream] == []

    run_virtual(main())


def test_200_drafts_aborted_at_growing_times_leave_nothing() -> None:
    async def main() -> None:
        cascade = cascade_of(SCRIPTS["words"])
        await cascade.start(lambda line: None)
        for number in range(200):
            stream = cascade.reply(request())
            await asyncio.sleep(number / 100)
            stream.abort()
            await reaped(cascade)
        await cascade.close()

    run_virtual(main())
