from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.one_shot import OneShotStage
from pipelines.runtime.ticket import Aborted, Ticket
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


def test_runs_each_input_in_order() -> None:
    async def main() -> None:
        async with started(make()) as stage:
            stream = stage.open(request())
            await stream.push("one two")
            await stream.push("three")
            await stream.finish()
            assert [word async for word in stream] == ["one", "two", "three"]
            assert stage.active == 0 and stage.abort_latency.count == 0

    check(main)


def test_gathers_inputs_into_one_run() -> None:
    def join(_: None, request: SpeakRequest, texts: list[str], ticket: Ticket) -> list[str]:
        return ["+".join(texts)]

    async def main() -> None:
        async with started(make(join, gather=True)) as stage:
            stream = stage.open(request())
            for text in "abc":
                await stream.push(text)
            await stream.finish()
            await stream.push("too late")
            assert [text async for text in stream] == ["a+b+c"]
            empty = stage.open(request())
            await empty.finish()
            assert [text async for text in empty] == [""]

    check(main)


def test_a_stream_without_input_ends_without_a_run() -> None:
    async def main() -> None:
        async with started(make()) as stage:
            stream = stage.open(request())
            assert stage.active == 1
            await stream.finish()
            assert stage.active == 0
            assert [word async for word in stream] == []

    check(main)


def test_a_failing_run_fails_its_request_alone() -> None:
    def run(_: None, request: SpeakRequest, text: str, ticket: Ticket) -> Iterator[str]:
        yield text
        if text == "bad":
            raise ValueError("no such phoneme")

    async def main() -> None:
        async with started(make(run)) as stage:
            bad, good = stage.open(request("bad")), stage.open(request("good"))
            await bad.push("bad")
            await good.push("good")
            await good.finish()
            assert await anext(aiter(bad)) == "bad"
            with pytest.raises(StageError, match="no such phoneme") as raised:
                await anext(aiter(bad))
            assert raised.value.code == "voice_failed"
            assert [text async for text in good] == ["good"]
            await until(lambda: stage.active == 0)

    check(main)


def test_giving_up_unasked_is_an_error_not_a_silence() -> None:
    def run(_: None, request: SpeakRequest, text: str, ticket: Ticket) -> Iterator[str]:
        raise Aborted("nobody asked")
        yield text

    async def main() -> None:
        async with started(make(run)) as stage:
            stream = stage.open(request())
            await stream.push("x")
            with pytest.raises(StageError, match="gave up"):
                await anext(aiter(stream))

    check(main)


def test_a_stalled_reader_pauses_its_own_request_only() -> None:
    made: list[str] = []

    def run(_: None, request: SpeakRequest, text: str, ticket: Ticket) -> Iterator[str]:
        for number in range(100):
            made.append(request.request_id)
            yield f"{text}{number}"

    async def main() -> None:
        async with started(make(run, output_limit=4)) as stage:
            stalled, read = stage.open(request("stalled")), stage.open(request("read"))
            await stalled.push("s")
            await until(lambda: made.count("stalled") == 4)
            await read.push("r")
            await read.finish()
            assert len([text async for text in read]) == 100
            assert made.count("stalled") == 4
            await stalled.finish()
            assert len([text async for text in stalled]) == 100

    check(main)


def test_the_most_urgent_request_of_the_stage_runs_when_the_token_comes() -> None:
    """A live request does not wait behind the place that a draft has in the queue."""
    order: list[str] = []

    def run(_: None, request: SpeakRequest, text: str, ticket: Ticket) -> Iterator[str]:
        order.append(request.request_id)
        yield text

    async def main() -> None:
        cpu = CpuToken()
        async with started(make(run, cpu=cpu)) as stage:
            with cpu.hold(Ticket("other", Urgency.FIRST_AUDIO)):
                draft = stage.open(request("draft", Urgency.DRAFT))
                await draft.push("d")
                await until(lambda: cpu.waiting == 1)
                live = stage.open(request("live"))
                hurried = stage.open(request("hurried", Urgency.DRAFT))
                for stream in (hurried, live):
                    await stream.push("x")
                hurried.hurry(Urgency.STEADY)
            for stream in (draft, live, hurried):
                await stream.finish()
                assert len([text async for text in stream]) == 1
        assert order == ["live", "hurried", "draft"]

    check(main)


def test_a_long_run_lets_a_more_urgent_one_in_between_two_outputs() -> None:
    order: list[str] = []
    first = threading.Event()
    go_on = threading.Event()

    def run(_: None, request: SpeakRequest, text: str, ticket: Ticket) -> Iterator[str]:
        for number in range(3):
            order.append(f"{request.request_id}{number}")
            if order == ["draft0"]:
                first.set()
                assert go_on.wait(WAIT_S)
            yield text

    async def main() -> None:
        async with started(make(run)) as stage:
            draft = stage.open(request("draft", Urgency.DRAFT))
            await draft.push("x")
            await until(first.is_set)
            live = stage.open(request("live"))
            await live.push("x")
            go_on.set()
            for stream in (draft, live):
                await stream.finish()
                assert len([text async for text in stream]) == 3
        assert order == ["draft0", "live0", "live1", "live2", "draft1", "draft2"]

    check(main)


def test_a_stage_that_gives_nothing_fails_the_request() -> None:
    go_on = threading.Event()

    def run(_: None, request: SpeakRequest, text: str, ticket: Ticket) -> Iterator[str]:
        assert go_on.wait(WAIT_S)
        yield text

    async def main() -> None:
        async with started(make(run, stall_timeout_ms=30)) as stage:
            stream = stage.open(request())
            await stream.push("x")
            with pytest.raises(StageError) as raised:
                await anext(aiter(stream))
            assert raised.value.code == "stage_timeout"
            go_on.set()
            await until(lambda: stage.active == 0)

    check(main)


def test_waiting_for_input_is_no_stall() -> None:
    async def main() -> None:
        async with started(make(stall_timeout_ms=20)) as stage:
            stream = stage.open(request())
            await stream.push("one")
            assert await anext(aiter(stream)) == "one"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await anext(aiter(stream))
            await stream.push("two")
            await stream.finish()
            assert [text async for text in stream] == ["two"]

    check(main)


def test_too_much_to_gather_fails_instead_of_waiting_for_ever() -> None:
    import pipelines.runtime.one_shot as module

    def run(_: None, request: SpeakRequest, texts: list[str], ticket: Ticket) -> list[str]:
        return texts

    async def main() -> None:
        async with started(make(run, gather=True)) as stage:
            stream = stage.open(request())
            for _ in range(module.GATHER_LIMIT + 1):
                await stream.push("x")
            with pytest.raises(StageError) as raised:
                await anext(aiter(stream))
            assert raised.value.code == "input_too_long"
            assert stage.active == 0

    check(main)


def test_what_load_raises_reaches_start() -> None:
    def load(progress: Callable[[str], None]) -> None:
        raise StageError("model_missing", "run this")

    async def main() -> None:
        stage = Stage("voice", load, by_word, None)
        with pytest.raises(StageError, match="run this"):
            await stage.start(lambda line: None)
        with pytest.raises(RuntimeError, match="before it was started"):
            stage.open(request())
        await stage.close()

    check(main)
