"""What is told of a worker that is away: to whoever runs the server, and to clients."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.runtime.worker_health import WorkerHealth
from pipelines.types import StageError
from tests.pipelines.runtime.worker_driving import (
    BRISK,
    eventually,
    pid_of,
    request,
    rest,
    say,
    serving,
)
from tests.pipelines.waiting import check

CAUSE = "was ended by SIGKILL"


def test_a_restart_that_goes_well_is_no_failure() -> None:
    health = WorkerHealth("tts", patience_s=5.0)
    assert health.failure(0.0) is None and health.state(False, False) == "loading"
    health.serve()
    assert health.state(True, False) == "serving"
    health.lose(CAUSE, 0, now_s=100.0)
    assert health.failure(105.0) is None and health.state(False, False) == "restarting"
    health.serve()
    assert health.failure(1000.0) is None


def test_a_restart_that_did_not_load_is_one_until_the_stage_serves() -> None:
    health = WorkerHealth("tts", patience_s=5.0)
    health.serve()
    health.lose(CAUSE, 0, now_s=100.0)
    health.lose("reports ModelMissing: no folder.", 1, now_s=101.0)
    assert health.failure(101.0) == (
        "The process of the tts stage reports ModelMissing: no folder. Its restart has failed once "
        "and is tried again."
    )
    health.lose("ended by itself with exit status 7", 3, now_s=102.0)
    assert "exit status 7. Its restart has failed 3 times" in (health.failure(102.0) or "")
    assert health.state(False, False) == "restarting"
    health.serve()
    assert health.failure(103.0) is None
    health.lose(CAUSE, 0, now_s=200.0)
    assert health.failure(200.0) is None, "what was mended is forgotten"


def test_a_restart_for_which_nobody_can_wait_is_one_too() -> None:
    health = WorkerHealth("tts", patience_s=5.0)
    health.serve()
    health.lose(CAUSE, 0, now_s=100.0)
    assert health.failure(161.0) == (
        "The process of the tts stage was ended by SIGKILL. It is being restarted, for 61 s now."
    )


def test_a_silent_worker_does_not_serve() -> None:
    health = WorkerHealth("tts", patience_s=5.0)
    health.serve()
    assert health.state(True, True) == "silent"


def test_a_model_that_went_away_is_told_until_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = tmp_path / "model"
    model.mkdir()

    async def main() -> None:
        options = replace(BRISK, failed_starts=1000, restart_wait_s=0.1)
        async with serving("of_folder", {"folder": str(model)}, options, "tts") as stage:
            assert stage.failure is None
            model.rmdir()
            os.kill(pid_of(stage), signal.SIGKILL)
            await eventually(lambda: stage.restarts > 0 and stage.failure is not None)
            await eventually(lambda: "Its restart has failed" in (stage.failure or ""))
            stats = stage.stats
            assert stats.state == "restarting" and stats.failure is not None
            assert f"reports ModelMissing: there is no {model}: fetch it" in stats.failure
            with pytest.raises(StageError) as raised:
                await rest(stage.open(request()))
            assert raised.value.code == "worker_restarting"
            assert str(tmp_path) not in raised.value.message
            model.mkdir()
            await eventually(lambda: stage.stats.state == "serving")
            assert stage.failure is None and await say(stage, "a") == ["a"]
            failed = [line for line in caplog.messages if "reports ModelMissing" in line]
            assert len(failed) == stage.restarts - 1, "the log tells of each attempt once"

    check(main)


def test_a_process_that_stands_still_does_not_serve() -> None:
    async def main() -> None:
        async with serving("obedient") as stage:
            os.kill(pid_of(stage), signal.SIGSTOP)
            await eventually(lambda: stage.stats.state == "silent")
            os.kill(pid_of(stage), signal.SIGCONT)
            await eventually(lambda: stage.stats.state == "serving")
            assert stage.restarts == 0

    check(main)
