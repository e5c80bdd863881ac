"""A worker that dies or hangs fails its requests, comes back, and takes nobody along."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.ports import Capacity
from pipelines.runtime.remote_stage import ProcessStage
from pipelines.types import StageError
from tests.pipelines.runtime.worker_driving import (
    BRISK,
    eventually,
    heartbeat,
    is_alive,
    pid_of,
    request,
    rest,
    say,
    serving,
)
from tests.pipelines.waiting import TEST_S, check, until

RESTARTING = "^The worker stage is being restarted after a failure: try again in a moment.$"
OUT_OF_SERVICE = "^The worker stage is out of service.* The server's log has the cause.$"
PATIENT = replace(BRISK, first_backoff_s=60.0, longest_backoff_s=60.0, restart_wait_s=90.0)


async def fails(stream: Any, told: str, code: str = "worker_crashed") -> None:
    with pytest.raises(StageError, match=told) as raised:
        await rest(stream)
    assert raised.value.code == code


def test_a_kill_in_mid_stream_is_told_and_mended() -> None:
    async def main() -> None:
        async with serving("obedient", name="tts") as stage:
            streams = [stage.open(request()) for _ in range(3)]
            for stream in streams:
                await stream.push("a")
                assert await anext(stream) == "a"
            first = pid_of(stage)
            os.kill(first, signal.SIGKILL)
            for stream in streams:
                await fails(stream, "process of the tts stage was ended by SIGKILL.*memory.*again")
                await stream.push("late")
                stream.abort()
            assert stage.active == 0
            assert await say(stage, "b") == ["b"]  # it waited for the new one
            assert pid_of(stage) != first and not is_alive(first)
            assert stage.restarts == 1

    check(main)


@pytest.mark.parametrize(("status", "told"), [(0, "exit status 0"), (3, "exit status 3")])
def test_an_exit_is_told_with_its_status(status: int, told: str) -> None:
    async def main() -> None:
        async with serving("obedient") as stage:
            stream = stage.open(request())
            await stream.push(f"exit {status}")
            await fails(stream, f"ended by itself with {told}")
            assert await say(stage, "b") == ["b"]

    check(main)


def test_a_crash_before_the_first_output() -> None:
    async def main() -> None:
        async with serving("obedient") as stage:
            for _ in range(2):
                stream = stage.open(request())
                os.kill(pid_of(stage), signal.SIGSEGV)
                await fails(stream, "SIGSEGV: a fault in compiled code")
                assert await say(stage, "b") == ["b"]
            assert stage.restarts == 2

    check(main)


def test_a_loop_that_hangs_is_killed_and_told() -> None:
    async def main() -> None:
        options = replace(BRISK, hang_timeout_s=1.0)
        async with serving("obedient", options=options) as stage:
            first = pid_of(stage)
            stream = stage.open(request())
            await stream.push("hang")
            await fails(stream, "gave no sign of life for 1 s and was killed")
            assert await say(stage, "b") == ["b"]
            assert not is_alive(first)

    check(main)


def test_a_worker_that_talks_nonsense_is_killed_and_told() -> None:
    async def main() -> None:
        async with serving("obedient") as stage:
            first = pid_of(stage)
            stream = stage.open(request())
            await stream.push("noise")
            await stream.push("a")
            await fails(stream, "said what cannot be read .*header.* and was killed")
            assert await say(stage, "b") == ["b"]
            assert not is_alive(first)

    check(main)


def test_it_is_the_same_on_the_servers_own_loop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        async with asyncio.timeout(TEST_S), serving("obedient") as stage:
            stream = stage.open(request())
            await stream.push("a")
            assert await anext(stream) == "a"
            await crashed(stage)
            await fails(stream, "ended by SIGKILL")
            assert await say(stage, "count 100") == [str(number) for number in range(100)]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def test_a_stopped_process_is_replaced_before_anybody_asks() -> None:
    async def main() -> None:
        options = replace(BRISK, hang_timeout_s=1.0)
        async with serving("obedient", options=options) as stage:
            first = pid_of(stage)
            os.kill(first, signal.SIGSTOP)
            await until(lambda: stage.restarts == 1)
            assert await say(stage, "b") == ["b"]
            assert not is_alive(first)

    check(main)


def test_who_asks_a_stopped_process_is_told_what_became_of_it() -> None:
    async def main() -> None:
        options = replace(BRISK, hang_timeout_s=1.0)
        async with serving("obedient", options=options) as stage:
            os.kill(pid_of(stage), signal.SIGSTOP)
            await fails(stage.open(request()), "gave no sign of life")

    check(main)


def test_the_neighbour_of_a_crash_does_not_notice() -> None:
    async def main() -> None:
        async with serving("obedient", name="a") as one, serving("obedient", name="b") as other:
            theirs = other.open(request())
            await theirs.push("x")
            assert await anext(theirs) == "x"
            mine = one.open(request())
            os.kill(pid_of(one), signal.SIGKILL)
            await fails(mine, "the a stage was ended by SIGKILL")
            await theirs.push("y")
            await theirs.finish()
            assert await rest(theirs) == ["y"]
            assert other.restarts == 0
            assert await say(one, "z") == ["z"]

    check(main)


async def crashed(stage: ProcessStage[Any, Any, Any]) -> None:
    """Kill the worker, and wait until the stage knows."""
    pid = pid_of(stage)
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: stage.pid != pid)


def test_what_is_done_before_the_worker_is_back_is_done_in_order() -> None:
    async def main() -> None:
        options = replace(BRISK, input_window=4, first_backoff_s=0.5, longest_backoff_s=0.5)
        async with serving("obedient", options=options) as stage:
            await crashed(stage)
            stream = stage.open(request())
            for number in range(4):
                await stream.push(str(number))
            assert stage.pid is None  # all that was before the new one

            async def more() -> None:
                for number in range(4, 12):  # waits: the window is full
                    await stream.push(str(number))
                await stream.finish()

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(more())
                assert await rest(stream) == [str(number) for number in range(12)]

    check(main)


def test_whoever_waits_too_long_for_a_worker_is_told() -> None:
    async def main() -> None:
        async with serving("obedient", options=replace(PATIENT, restart_wait_s=0.1)) as stage:
            await crashed(stage)
            stream = stage.open(request())  # nobody need wait: the next attempt is a minute off
            await fails(stream, RESTARTING, "worker_restarting")
            assert stage.active == 0

    check(main)


def test_what_a_dead_worker_told_is_forgotten() -> None:
    async def main() -> None:
        async with serving("metered", options=PATIENT) as stage:
            await heartbeat(stage)
            assert stage.stats.slots == 16 and stage.stats.state == "serving"
            await crashed(stage)
            assert stage.stats.slots is None and stage.stats.capacity is None
            assert stage.capacity is None and stage.stats.state == "restarting"

    check(main)


def test_nobody_waits_for_a_worker_that_loads_for_longer(tmp_path: Path) -> None:
    async def main() -> None:
        options = replace(BRISK, restart_wait_s=5.0)
        arguments: dict[str, object] = {"how": "never", "once": str(tmp_path / "once")}
        async with serving("bad_start", arguments, options) as stage:
            stage._load_s = 60.0  # as of a large model
            await crashed(stage)
            stream = stage.open(request())
            assert stage.active == 0, "it was told at once"
            await fails(stream, RESTARTING, "worker_restarting")

    check(main)


def test_a_restart_that_takes_too_long_fails_who_waits(tmp_path: Path) -> None:
    async def main() -> None:
        options = replace(BRISK, restart_wait_s=0.3)
        arguments: dict[str, object] = {"how": "never", "once": str(tmp_path / "once")}
        async with serving("bad_start", arguments, options) as stage:
            await crashed(stage)
            stream = stage.open(request())
            await stream.push("x")
            await fails(stream, RESTARTING, "worker_restarting")
            await stream.push("y")
            assert stage.active == 0

    check(main)


def test_an_abort_while_the_worker_is_away_is_done_at_once() -> None:
    async def main() -> None:
        async with serving("obedient", options=PATIENT) as stage:
            await crashed(stage)
            streams = [stage.open(request("same")) for _ in range(3)]
            await streams[0].push("a")
            for stream in streams:
                stream.abort()
                assert await rest(stream) == []
            assert stage.active == 0 and stage.abort_latency.count == 3

    check(main)


def test_an_abort_that_meets_a_crash_is_done() -> None:
    async def main() -> None:
        async with serving("obedient") as stage:
            for _ in range(3):
                streams = [stage.open(request("same")) for _ in range(10)]
                os.kill(pid_of(stage), signal.SIGKILL)
                for stream in streams:
                    await stream.push("count 10")
                    stream.abort()
                    assert await rest(stream) == []
                await eventually(lambda: stage.active == 0)
                assert await say(stage, "b") == ["b"]
            assert stage.abort_latency.count == 30

    check(main)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("missing", "ModelMissing: The model file toy.bin is missing.*2 attempts"),
        ("exit", "exit status 7.*2 attempts to restart it have failed"),
    ],
)
def test_a_worker_that_cannot_be_restarted_is_given_up(tmp_path: Path, how: str, told: str) -> None:
    async def main() -> None:
        arguments: dict[str, object] = {"how": how, "once": str(tmp_path / "once")}
        options = replace(BRISK, failed_starts=2, restart_wait_s=30.0)
        async with serving("bad_start", arguments, options) as stage:
            await crashed(stage)
            await fails(stage.open(request()), OUT_OF_SERVICE, "worker_given_up")
            assert re.search(told, stage.failure or "")
            assert stage.capacity == Capacity(0.0, 0.0, 0.0)
            assert stage.stats.state == "out_of_service" and stage.stats.restarts == 2
            assert stage.stats.capacity == stage.capacity
            assert stage.stats.failure == stage.failure
            await fails(stage.open(request()), OUT_OF_SERVICE, "worker_given_up")
            assert stage.active == 0

    check(main)


def test_closing_between_two_lives_waits_for_nothing() -> None:
    async def main() -> None:
        async with serving("obedient", options=PATIENT) as stage:
            await crashed(stage)
            stream = stage.open(request())
        assert await rest(stream) == []

    check(main)
