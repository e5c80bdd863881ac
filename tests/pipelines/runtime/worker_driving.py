"""How tests drive a stage in a worker process."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pipelines.ports import Stream
from pipelines.runtime.remote_stage import ProcessStage
from pipelines.runtime.worker_options import WorkerOptions
from pipelines.types import SpeakRequest, Urgency
from tests.pipelines.runtime.worker_stages import HERE
from tests.pipelines.waiting import WAIT_S

# Fast where the defaults are patient; a test that needs patience says so.
BRISK = WorkerOptions(
    start_timeout_s=30.0,
    restart_wait_s=30.0,
    heartbeat_s=0.05,
    first_backoff_s=0.01,
    longest_backoff_s=0.1,
    close_timeout_s=5.0,
)


@asynccontextmanager
async def serving(
    factory: str,
    arguments: dict[str, object] | None = None,
    options: WorkerOptions = BRISK,
    name: str = "worker",
) -> AsyncIterator[ProcessStage[Any, Any, Any]]:
    """A started stage; afterwards nothing is left of it."""
    tasks = asyncio.all_tasks()
    stage = stage_of(factory, arguments, options, name)
    await stage.start(lambda line: None)
    pid = stage.pid
    try:
        yield stage
    finally:
        await stage.close()
    assert stage.active == 0 and stage.pid is None
    assert pid is not None and not is_alive(pid)
    assert asyncio.all_tasks() == tasks


def stage_of(
    factory: str,
    arguments: dict[str, object] | None = None,
    options: WorkerOptions = BRISK,
    name: str = "worker",
) -> ProcessStage[Any, Any, Any]:
    return ProcessStage(name, f"{HERE}:{factory}", arguments, options)


def request(request_id: str = "r", urgency: Urgency = Urgency.STEADY) -> SpeakRequest:
    return SpeakRequest(request_id, "voice", urgency)


async def say(stage: ProcessStage[Any, Any, Any], *texts: str) -> list[Any]:
    """Everything that a new request gives for these inputs."""
    stream = stage.open(request())
    for text in texts:
        await stream.push(text)
    await stream.finish()
    return await rest(stream)


async def rest(stream: Stream[Any, Any]) -> list[Any]:
    return [output async for output in stream]


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for what another process brings about, leaving it the processor."""
    async with asyncio.timeout(WAIT_S):
        for _ in itertools.count():
            if condition():
                return
            await asyncio.sleep(0.002)


async def heartbeat(stage: ProcessStage[Any, Any, Any]) -> None:
    """Until the worker has answered a question that was asked after this call."""
    for _ in range(2):
        told = stage._told
        await eventually(lambda: stage._told is not told)  # noqa: B023


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pid_of(stage: ProcessStage[Any, Any, Any]) -> int:
    pid = stage.pid
    assert pid is not None and pid != os.getpid()
    return pid
