"""A slow side stops the other, and an abort is counted until nothing is left."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from pipelines.ports import Capacity, StageStats
from pipelines.types import Message, TextDelta, WriteRequest
from tests.pipelines.runtime.worker_driving import (
    BRISK,
    eventually,
    heartbeat,
    request,
    rest,
    serving,
)
from tests.pipelines.waiting import check

STAGE_LIMIT = 4  # outputs that the counter's own queue holds
IN_HAND = 2  # one that the stage waits to hand over, one that waits for the line


def test_a_reader_that_stops_stops_the_stage(tmp_path: Path) -> None:
    made = tmp_path / "made"
    options = replace(BRISK, output_window=8)

    async def main() -> None:
        async with serving("counter", {"made": str(made)}, options) as stage:
            stream = stage.open(request())
            await eventually(lambda: made.exists() and made.stat().st_size >= 8 + STAGE_LIMIT)
            await heartbeat(stage)  # it has had time to make more
            assert made.stat().st_size <= 8 + STAGE_LIMIT + IN_HAND
            for number in range(100):
                assert await anext(stream) == str(number)
            await eventually(lambda: made.stat().st_size >= 100 + STAGE_LIMIT)
            await heartbeat(stage)
            assert made.stat().st_size <= 100 + 8 + STAGE_LIMIT + IN_HAND
            stream.abort()
            await eventually(lambda: stage.active == 0)
            assert stage.abort_latency.count == 1

    check(main)


def test_the_narrowest_windows_carry_everything() -> None:
    async def main() -> None:
        options = replace(BRISK, input_window=1, output_window=1)
        async with serving("obedient", {"output_limit": 1}, options) as stage:
            stream = stage.open(request())

            async def push() -> None:
                for _ in range(50):
                    await stream.push("count 4")
                await stream.finish()

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(push())
                assert await rest(stream) == ["0", "1", "2", "3"] * 50

    check(main)


def test_a_stage_that_takes_nothing_stops_the_pusher(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.touch()
    options = replace(BRISK, input_window=4)

    async def main() -> None:
        async with serving("slow_eater", {"taken": str(allowed)}, options) as stage:
            stream = stage.open(request())
            pushed: list[int] = []

            async def push() -> None:
                for number in range(20):
                    await stream.push(str(number))
                    pushed.append(number)

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(push())
                await eventually(lambda: len(pushed) == 4)
                await heartbeat(stage)
                assert len(pushed) == 4
                allowed.write_bytes(b"..")
                assert [await anext(stream) for _ in range(2)] == ["0", "1"]
                allowed.write_bytes(bytes(5))
                assert await anext(stream) == "2"
                await eventually(lambda: len(pushed) >= 6)
                stream.abort()  # frees whoever pushes
            assert await rest(stream) == []

    check(main)


def test_an_abort_is_over_when_the_stage_has_freed_the_request(tmp_path: Path) -> None:
    released = tmp_path / "released"

    async def main() -> None:
        async with serving("stubborn", {"released": str(released)}) as stage:
            stream = stage.open(WriteRequest("r", (Message("user", "a"),)))
            assert await anext(stream) == TextDelta("on")
            stream.abort()
            assert await rest(stream) == [] and stage.active == 1
            await heartbeat(stage)
            assert stage.active == 1 and stage.abort_latency.count == 0
            released.touch()
            await eventually(lambda: stage.active == 0)
            assert stage.abort_latency.count == 1 and stage.abort_latency.worst_ms > 0
            assert stage.stats.worst_abort_ms == stage.abort_latency.worst_ms

    check(main)


def test_an_abort_is_not_over_because_another_request_has_ended(tmp_path: Path) -> None:
    """Outputs of the other wait in the worker, while the stage has nothing left of it."""
    released = tmp_path / "released"

    async def main() -> None:
        async with serving("stubborn", {"released": str(released)}) as stage:
            quick = stage.open(WriteRequest("quick", (Message("user", "a"),)))
            assert await anext(quick) == TextDelta("on")
            stream = stage.open(WriteRequest("r", (Message("user", "a"),)))
            assert await anext(stream) == TextDelta("on")
            stream.abort()
            for _ in range(2):
                await heartbeat(stage)
                assert stage.active == 2 and stage.abort_latency.count == 0
            released.touch()
            await eventually(lambda: stage.active == 1)
            assert len(await rest(quick)) == 50

    check(main)


def test_what_the_stage_measures_is_told_here() -> None:
    async def main() -> None:
        async with serving("metered", name="tts") as stage:
            assert stage.capacity is None
            await heartbeat(stage)
            assert stage.capacity == Capacity(8.0, 2.5, 16.0)
            stream = stage.open(request())
            expected = StageStats("tts", 1, slots=16, slots_used=3, capacity=stage.capacity)
            assert stage.stats == replace(expected, state="serving", restarts=0)
            stream.abort()
            await eventually(lambda: stage.active == 0)
            assert stage.stats.aborts == 1 and stage.stats.last_abort_ms > 0

    check(main)


def test_a_stage_that_cannot_measure_is_alive_all_the_same() -> None:
    async def main() -> None:
        async with serving("metered", {"broken": True}) as stage:
            stream = stage.open(request())
            await heartbeat(stage)
            await stream.push("a")
            assert await anext(stream) == "a"
            assert stage.restarts == 0 and stage.capacity is None

    check(main)
