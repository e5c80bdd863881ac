from __future__ import annotations

import threading
from contextlib import asynccontextmanager

import pytest

from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.self_scheduled import Emit, SelfScheduledStage
from pipelines.runtime.ticket import Aborted, Ticket
from pipelines.types import StageError, Urgency, WriteRequest
from tests.pipelines.waiting import check, until

WAIT_S = 5.0
Stage = SelfScheduledStage[WriteRequest, int]


def request(name: str = "r", urgency: Urgency = Urgency.FIRST_AUDIO) -> WriteRequest:
    return WriteRequest(name, (), urgency)


@asynccontextmanager
async def started(run, cpu: CpuToken | None = None, **options):
    stage = Stage("llm", lambda progress: None, run, cpu, **options)
    await stage.start(lambda line: None)
    try:
        yield stage
    finally:
        await stage.close()


def count(_: None, request: WriteRequest, ticket: Ticket, emit: Emit[int]) -> None:
    for number in range(100):
        emit(number)


@pytest.mark.parametrize("cpu", [None, CpuToken()])
def test_hands_outputs_over_in_order_beyond_its_queue(cpu: CpuToken | None) -> None:
    async def main() -> None:
        async with started(count, cpu, output_limit=3) as stage:
            stream = stage.open(request())
            await stream.finish()
            assert [number async for number in stream] == list(range(100))
            assert stage.active == 0

    check(main)


def test_an_abort_ends_the_run_at_its_next_output() -> None:
    raised = threading.Event()

    def run(_: None, request: WriteRequest, ticket: Ticket, emit: Emit[int]) -> None:
        try:
            for number in range(1_000_000):
                emit(number)
        except Aborted:
            raised.set()
            raise

    async def main() -> None:
        async with started(run, output_limit=2) as stage:
            stream = stage.open(request())
            assert await anext(aiter(stream)) == 0
            stream.abort()  # the thread may well be waiting for its reader now
            assert [number async for number in stream] == []
            await until(lambda: stage.active == 0)
            assert raised.is_set()
            assert stage.abort_latency.count == 1

    check(main)


def test_an_abort_reaches_an_engine_that_makes_nothing_yet() -> None:
    prefilling, stop = threading.Event(), threading.Event()

    def run(_: None, request: WriteRequest, ticket: Ticket, emit: Emit[int]) -> None:
        ticket.on_abort(stop.set)
        prefilling.set()
        assert stop.wait(WAIT_S)
        raise Aborted

    async def main() -> None:
        async with started(run) as stage:
            stream = stage.open(request())
            await until(prefilling.is_set)
            stream.abort()
            await until(lambda: stage.active == 0)
            assert [number async for number in stream] == []

    check(main)


def test_a_request_that_waits_for_the_engine_is_aborted_at_once() -> None:
    ran: list[str] = []
    go_on = threading.Event()

    def run(_: None, request: WriteRequest, ticket: Ticket, emit: Emit[int]) -> None:
        ran.append(request.request_id)
        assert go_on.wait(WAIT_S)
        emit(1)

    async def main() -> None:
        async with started(run) as stage:
            first = stage.open(request("first"))
            await until(lambda: ran == ["first"])
            second = stage.open(request("second"))
            third = stage.open(request("third", Urgency.DRAFT))
            fourth = stage.open(request("fourth"))
            second.abort()
            assert stage.active == 3
            third.hurry(Urgency.FIRST_AUDIO)
            go_on.set()
            for stream in (first, third, fourth):
                assert [number async for number in stream] == [1]
        assert ran == ["first", "third", "fourth"]

    check(main)


def test_a_token_goes_to_the_more_urgent_between_two_outputs() -> None:
    order: list[str] = []
    token = CpuToken()
    may_go = threading.Event()

    def run(_: None, request: WriteRequest, ticket: Ticket, emit: Emit[int]) -> None:
        for number in range(3):
            order.append(request.request_id)
            if len(order) == 1:
                assert may_go.wait(WAIT_S)
            emit(number)

    async def main() -> None:
        async with started(run, token, threads=2) as stage:
            draft = stage.open(request("draft", Urgency.DRAFT))
            await until(lambda: order == ["draft"])
            live = stage.open(request("live"))
            await until(lambda: token.waiting == 1)
            may_go.set()
            for stream in (draft, live):
                assert [number async for number in stream] == [0, 1, 2]
        assert order == ["draft", "live", "live", "live", "draft", "draft"]

    check(main)


def test_a_reader_that_never_comes_does_not_keep_the_engine() -> None:
    async def main() -> None:
        async with started(count, output_limit=1, reader_timeout_ms=20) as stage:
            stalled = stage.open(request("stalled"))
            await until(lambda: stage.active == 0)
            assert await anext(aiter(stalled)) == 0
            with pytest.raises(StageError) as raised:
                await anext(aiter(stalled))
            assert raised.value.code == "reader_stalled"

    check(main)


def test_a_failure_comes_after_what_was_made() -> None:
    def run(_: None, request: WriteRequest, ticket: Ticket, emit: Emit[int]) -> None:
        emit(1)
        raise StageError("llm_context", "The prompt is too long.")

    async def main() -> None:
        async with started(run) as stage:
            stream = stage.open(request())
            assert await anext(aiter(stream)) == 1
            with pytest.raises(StageError, match="too long"):
                await anext(aiter(stream))
            await until(lambda: stage.active == 0)

    check(main)


def test_200_aborts_leave_nothing() -> None:
    async def main() -> None:
        async with started(count, CpuToken(), output_limit=4) as stage:
            for number in range(200):
                stream = stage.open(request(str(number)))
                if number % 3:
                    assert await anext(aiter(stream)) == 0
                stream.abort()
            await until(lambda: stage.active == 0)
            last = stage.open(request("last"))
            assert len([number async for number in last]) == 100

    check(main)
