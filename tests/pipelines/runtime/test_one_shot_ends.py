from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager

import pytest

from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.one_shot import OneShotStage
from pipelines.runtime.ticket import Ticket
from pipelines.types import SpeakRequest, StageError, Urgency
from tests.pipelines.waiting import check, until

WAIT_S = 5.0
Stage = OneShotStage[SpeakRequest, str, str]


def request(name: str = "r", urgency: Urgency = Urgency.FIRST_AUDIO) -> SpeakRequest:
    return SpeakRequest(name, "voice", urgency)


def by_word(_: None, request: SpeakRequest, text: str, ticket: Ticket) -> Iterator[str]:
    yield from text.split()


@asynccontextmanager
async def started(stage: Stage):
    await stage.start(lambda line: None)
    try:
        yield stage
    finally:
        await stage.close()


def make(run=by_word, **options) -> Stage:
    return Stage("voice", lambda progress: None, run, options.pop("cpu", CpuToken()), **options)


def test_an_abort_closes_the_generator_and_delivers_nothing() -> None:
    closed = threading.Event()

    def run(_: None, request: SpeakRequest, text: str, ticket: Ticket) -> Iterator[str]:
        try:
            for number in range(1_000_000):
                yield str(number)
        finally:
            closed.set()

    async def main() -> None:
        async with started(make(run, output_limit=3)) as stage:
            stream = stage.open(request())
            await stream.push("x")
            assert await anext(aiter(stream)) == "0"
            stream.abort()
            assert [text async for text in stream] == []
            await until(lambda: stage.active == 0)
            assert closed.is_set()
            assert stage.abort_latency.count == 1
            assert 0 < stage.abort_latency.last_ms < 1000 * WAIT_S

    check(main)


def test_an_abort_during_a_step_drops_what_the_step_makes() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def run(_: None, request: SpeakRequest, text: str, ticket: Ticket) -> Iterator[str]:
        inside.set()
        assert go_on.wait(WAIT_S)
        yield "stale"
        raise AssertionError("a step after the abort")

    async def main() -> None:
        async with started(make(run)) as stage:
            stream = stage.open(request())
            await stream.push("x")
            await until(inside.is_set)
            stream.abort()
            assert stage.active == 1  # the step cannot be interrupted, and is not hidden
            go_on.set()
            await until(lambda: stage.active == 0)
            assert [text async for text in stream] == []

    check(main)


def test_an_abort_before_any_work_frees_at_once() -> None:
    async def main() -> None:
        async with started(make()) as stage:
            stream = stage.open(request())
            stream.abort()
            assert stage.active == 0
            await stream.push("ignored")
            await stream.finish()
            assert [text async for text in stream] == []

    check(main)


def test_an_abort_wakes_a_reader_and_a_pusher() -> None:
    blocked = threading.Event()

    def run(_: None, request: SpeakRequest, text: str, ticket: Ticket) -> Iterator[str]:
        assert blocked.wait(WAIT_S)
        yield text

    async def main() -> None:
        async with started(make(run, input_limit=1)) as stage:
            stream = stage.open(request())

            async def push() -> None:
                for number in range(5):
                    await stream.push(str(number))

            async def read() -> list[str]:
                return [text async for text in stream]

            async with asyncio.TaskGroup() as tasks:
                pushing, reading = tasks.create_task(push()), tasks.create_task(read())
                for _ in range(10):
                    await asyncio.sleep(0)
                assert not pushing.done() and not reading.done()
                stream.abort()
            assert reading.result() == []
            blocked.set()

    check(main)


def test_close_ends_everything_and_joins_the_threads() -> None:
    before = threading.active_count()

    async def main() -> None:
        stage = make()
        async with started(stage):
            streams = [stage.open(request(str(number))) for number in range(20)]
            for stream in streams:
                await stream.push("a b c")
        assert stage.active == 0
        for stream in streams:
            assert [text async for text in stream] == []
        late = stage.open(request())
        with pytest.raises(StageError, match="closed"):
            await anext(aiter(late))

    check(main)
    assert threading.active_count() <= before + 1  # the default executor's thread may linger


def test_a_loop_that_closes_early_raises_nothing_in_the_thread() -> None:
    raised: list[object] = []
    inside, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def run(_: None, request: SpeakRequest, text: str, ticket: Ticket) -> Iterator[str]:
        inside.set()
        assert go_on.wait(WAIT_S)
        try:
            yield text
            yield text
        finally:
            ended.set()

    async def main() -> None:
        stage = make(run)
        await stage.start(lambda line: None)
        stream = stage.open(request())
        await stream.push("x")
        await until(inside.is_set)

    hook = threading.excepthook
    threading.excepthook = raised.append
    try:
        check(main)
        go_on.set()
        assert ended.wait(WAIT_S)
    finally:
        threading.excepthook = hook
    assert raised == []
