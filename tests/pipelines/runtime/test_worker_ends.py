"""How long the end of a worker may take, and what of it the log tells."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from dataclasses import replace

import pytest

from pipelines.fakes.virtual_time import run_virtual
from pipelines.runtime.messages import Close, Ping, Pong, Start, ToWorker
from pipelines.runtime.worker_link import SILENT_BEATS, WorkerLink
from pipelines.runtime.worker_options import WorkerOptions
from tests.pipelines.runtime.worker_driving import BRISK, heartbeat, pid_of, serving
from tests.pipelines.waiting import WAIT_S, check

START = Start("tts", "a.module:function", {}, (), 0, 8)
ENGINE = WorkerOptions(hang_timeout_s=30.0, close_timeout_s=80.0)
TOLD = "the process of stage tts gave no sign of life for 5 s and was killed"


class Line(WorkerLink):
    """A link whose worker has started, and says only what the test has it say."""

    def __init__(self, answers: bool, after_s: float = 0.0) -> None:
        super().__init__(START, ENGINE, lambda _: None)
        self.answers = answers
        self._after_s = after_s
        self.said: list[ToWorker] = []
        self.started_at_s = 0.0

    def send(self, message: ToWorker) -> None:
        self.said.append(message)
        if self.answers and isinstance(message, Ping):
            asyncio.get_running_loop().call_later(self._after_s, self._receive, Pong(None))


def closed_after_s(answers: bool, silent_before_s: float = 0.0, after_s: float = 0.0) -> float:
    """How long a `stop` takes whose worker never exits. after_s: how late its answers are."""

    async def main() -> float:
        line = Line(answers or silent_before_s == 0, after_s)
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(line._watch())
            await asyncio.sleep(3.5 + silent_before_s)
            line.answers = answers
            begun_s = loop.time()
            await line.stop()
            assert Close() in line.said
            return loop.time() - begun_s

    return run_virtual(main())


def test_a_worker_that_is_silent_while_it_closes_is_killed_soon(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert closed_after_s(answers=False) <= 7.0
    assert caplog.messages == [TOLD]


def test_one_that_was_silent_before_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    assert closed_after_s(answers=False, silent_before_s=20.0) <= 1.0
    assert caplog.messages == [TOLD]


@pytest.mark.parametrize("after_s", [0.0, 3.5])
def test_a_worker_that_answers_has_all_its_time_to_close(
    after_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert closed_after_s(answers=True, after_s=after_s) == pytest.approx(80.0)
    assert caplog.messages == ["stage tts was not closed within 80 s"]


def test_a_worker_answers_while_its_stage_closes() -> None:
    async def main() -> None:
        options = replace(BRISK, close_timeout_s=10 * WAIT_S)
        async with serving("unclosable", options=options) as stage, asyncio.TaskGroup() as tasks:
            closing = tasks.create_task(stage.close())
            for _ in range(3):
                await heartbeat(stage)
            assert not closing.done()
            stage.kill()

    check(main)


def test_a_stopped_process_delays_no_close(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        options = replace(BRISK, close_timeout_s=10 * WAIT_S, close_silence_s=0.3)
        async with serving("obedient", options=options) as stage:
            os.kill(pid_of(stage), signal.SIGSTOP)
            async with asyncio.timeout(WAIT_S):
                await stage.close()

    with caplog.at_level(logging.WARNING):
        check(main)
    assert "gave no sign of life for 0.3 s and was killed" in caplog.text


def test_a_silent_worker_is_shown_as_such_and_ended_in_time() -> None:
    async def main() -> None:
        line = Line(answers=True)
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(line._watch())
            await asyncio.sleep(10.5)
            assert not line.is_silent
            line.answers = False
            await asyncio.sleep(SILENT_BEATS + 1.0)
            assert line.is_silent and line.is_serving
            line._receive(Pong(None))
            await asyncio.sleep(1.0)
            assert not line.is_silent
            await asyncio.sleep(29.0)
            assert line.is_serving
            await asyncio.sleep(2.0)
            assert not line.is_serving and "for 30 s" in watching.result().cause

    run_virtual(main())
