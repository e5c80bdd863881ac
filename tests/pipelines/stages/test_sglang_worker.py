"""The writer in a worker process: words, aborts, and the death of the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.runtime.remote_stage import ProcessStage
from pipelines.runtime.worker_options import WorkerOptions
from pipelines.types import Message, StageError, TextDelta, WriteOutput, WriteRequest
from tests.pipelines.stages.embedded import outputs
from tests.pipelines.stages.sglang_model import write_model
from tests.pipelines.waiting import check, until


def asked(text: str) -> WriteRequest:
    return WriteRequest(text, (Message("user", text),))


def said(found: list[WriteOutput]) -> str:
    return "".join(output.text for output in found if isinstance(output, TextDelta))


def test_an_engine_that_dies_fails_what_it_has_and_comes_back(tmp_path: Path) -> None:
    stage: ProcessStage[WriteRequest, None, WriteOutput] = ProcessStage(
        "llm",
        "tests.pipelines.stages.sglang_worker:create_writer",
        {"folder": str(write_model(tmp_path))},
        WorkerOptions(restart_wait_s=30.0, first_backoff_s=0.01),
    )

    async def main() -> None:
        await stage.start(lambda line: None)
        try:
            assert said(await outputs(stage.open(asked("Hello.")))) == "Yes."
            aborted = stage.open(asked("endless"))
            assert isinstance(await anext(aborted), TextDelta)
            aborted.abort()
            await until(lambda: stage.active == 0)
            other = stage.open(asked("endless"))
            await anext(other)
            dying = stage.open(asked("die"))
            for stream in (other, dying):
                with pytest.raises(StageError, match="exit status 70") as caught:
                    async for _ in stream:
                        pass
                assert caught.value.code == "worker_crashed"
            assert said(await outputs(stage.open(asked("Hello again.")))) == "Yes."
            assert stage.restarts == 1
        finally:
            await stage.close()

    check(main)
