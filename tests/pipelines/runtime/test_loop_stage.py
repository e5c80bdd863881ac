from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from pipelines.fakes.virtual_time import run_virtual
from pipelines.runtime.async_stage import AsyncDuplexStage, AsyncStage
from pipelines.runtime.ticket import Ticket
from pipelines.types import SpeakRequest, StageError, Urgency

REQUEST = SpeakRequest("r", "voice", Urgency.STEADY)


async def spin(turns: int = 5) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


def with_stage(stage: AsyncDuplexStage, body: Callable) -> None:
    async def main() -> None:
        await stage.start(lambda line: None)
        try:
            await body(stage)
        finally:
            await stage.close()
        assert stage.active == 0
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main())


async def shout(
    request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
) -> AsyncIterator[str]:
    async for text in inputs:
        await asyncio.sleep(1)
        yield text.upper()


def test_inputs_become_outputs() -> None:
    async def body(stage: AsyncDuplexStage) -> None:
        stream = stage.open(REQUEST)
        await stream.push("a")
        await stream.push("b")
        await stream.finish()
        await stream.push("late")
        assert [text async for text in stream] == ["A", "B"]
        assert stage.active == 0

    with_stage(AsyncDuplexStage("echo", shout), body)


@pytest.mark.parametrize("after_s", [0.0, 0.5, 1.0, 1.5])
def test_an_abort_at_any_time_runs_the_cleanup_and_delivers_nothing(after_s: float) -> None:
    cleaned: list[bool] = []

    async def run(request: SpeakRequest, ticket: Ticket) -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
                await asyncio.sleep(1)
        finally:
            cleaned.append(True)

    async def body(stage: AsyncDuplexStage) -> None:
        stream = stage.open(REQUEST)
        await asyncio.sleep(after_s)
        stream.abort()
        assert [text async for text in stream] == []
        await spin()
        assert stage.active == 0 and stage.abort_latency.count == 1
        # Before its first step a generator has nothing to clean.
        assert cleaned == ([True] if after_s else cleaned)

    with_stage(AsyncStage("endless", run), body)


def test_a_full_queue_pauses_the_run() -> None:
    made: list[int] = []

    async def run(request: SpeakRequest, ticket: Ticket) -> AsyncIterator[int]:
        for number in range(50):
            made.append(number)
            yield number

    async def body(stage: AsyncDuplexStage) -> None:
        stream = stage.open(REQUEST)
        await asyncio.sleep(10)
        assert len(made) == 5  # four in the queue, one in hand
        assert [number async for number in stream] == list(range(50))

    with_stage(AsyncStage("counter", run, output_limit=4), body)


def test_a_stall_fails_the_request_and_ends_its_task() -> None:
    async def run(request: SpeakRequest, ticket: Ticket) -> AsyncIterator[str]:
        yield "one"
        await asyncio.Event().wait()

    async def body(stage: AsyncDuplexStage) -> None:
        stream = stage.open(REQUEST)
        assert await anext(stream) == "one"
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(StageError) as raised:
            await anext(stream)
        assert raised.value.code == "stage_timeout"
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(2)
        await spin()
        assert stage.active == 0

    with_stage(AsyncStage("staller", run, stall_timeout_ms=2000), body)


def test_waiting_for_input_is_no_stall() -> None:
    async def body(stage: AsyncDuplexStage) -> None:
        stream = stage.open(REQUEST)

        async def push_late() -> None:
            await asyncio.sleep(3600)
            await stream.push("a")
            await stream.finish()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(push_late())
            assert [text async for text in stream] == ["A"]

    with_stage(AsyncDuplexStage("echo", shout, stall_timeout_ms=2000), body)


def test_an_exception_fails_one_request_and_leaves_the_others() -> None:
    async def run(request: SpeakRequest, ticket: Ticket) -> AsyncIterator[str]:
        await asyncio.sleep(1)
        if request.request_id == "bad":
            raise KeyError("oops")
        yield "fine"

    async def body(stage: AsyncDuplexStage) -> None:
        bad, good = stage.open(SpeakRequest("bad", "v")), stage.open(REQUEST)
        with pytest.raises(StageError, match="oops"):
            await anext(bad)
        assert [text async for text in good] == ["fine"]

    with_stage(AsyncStage("mixed", run), body)


def test_a_run_that_swallows_its_cancellation_still_delivers_nothing() -> None:
    async def run(request: SpeakRequest, ticket: Ticket) -> AsyncIterator[str]:
        for _ in range(3):
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                pass
            yield "stale"

    async def body(stage: AsyncDuplexStage) -> None:
        stream = stage.open(REQUEST)
        await asyncio.sleep(1)
        stream.abort()
        assert [text async for text in stream] == []
        await spin(10)
        assert stage.active == 0

    with_stage(AsyncStage("deaf", run), body)


def test_close_aborts_what_runs_and_refuses_what_comes() -> None:
    async def run(request: SpeakRequest, ticket: Ticket) -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield "never"

    async def body(stage: AsyncDuplexStage) -> None:
        streams = [stage.open(REQUEST) for _ in range(5)]
        await stage.close()
        for stream in streams:
            assert [text async for text in stream] == []
        with pytest.raises(StageError, match="closed"):
            await anext(stage.open(REQUEST))

    with_stage(AsyncStage("waiter", run), body)


def test_hurry_tells_those_who_asked() -> None:
    heard: list[Urgency] = []

    async def run(request: SpeakRequest, ticket: Ticket) -> AsyncIterator[str]:
        ticket.on_hurry(heard.append)
        await asyncio.sleep(1)
        yield ticket.urgency.name

    async def body(stage: AsyncDuplexStage) -> None:
        stream = stage.open(REQUEST)
        await spin()
        stream.hurry(Urgency.FIRST_AUDIO)
        assert [text async for text in stream] == ["FIRST_AUDIO"]
        assert heard == [Urgency.FIRST_AUDIO]

    with_stage(AsyncStage("hurried", run), body)
