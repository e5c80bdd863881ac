"""How a worker begins and ends, whatever comes in between."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.fakes.virtual_time import run_virtual
from pipelines.runtime.messages import Loading, Start
from pipelines.runtime.remote_stage import ProcessStage
from pipelines.runtime.worker_folder import SocketFolder
from pipelines.runtime.worker_link import WorkerLink
from pipelines.types import StageError
from pipelines.weights import ModelMissing
from tests.pipelines.runtime.worker_driving import (
    BRISK,
    eventually,
    is_alive,
    pid_of,
    request,
    rest,
    say,
    serving,
    stage_of,
)
from tests.pipelines.waiting import WAIT_S, check

START = Start("tts", "a.module:function", {}, (), 0, 8)
LINES = ["first line", "second line: \u00e9"]

PARENT = """
import asyncio
from tests.pipelines.runtime.worker_driving import request, stage_of

async def main():
    stage = stage_of("obedient")
    await stage.start(lambda line: None)
    stream = stage.open(request())
    await stream.push("pid")
    print(await anext(stream), flush=True)
    {then}

asyncio.run(main())
"""


def test_progress_comes_in_order_and_before_the_start_is_over() -> None:
    async def main() -> None:
        lines: list[str] = []
        stage = stage_of("bad_start", {"how": "well"})
        await stage.start(lines.append)
        assert lines == LINES
        await stage.close()

    check(main)


@pytest.mark.parametrize(
    ("how", "kind", "told"),
    [
        (
            "missing",
            ModelMissing,
            "^The model file toy.bin is missing: run `parley models fetch toy`.$",
        ),
        ("stage error", StageError, "^There is no such device: choose another.$"),
        ("odd", StageError, "tts stage could not be started.*UnicodeDecodeError: .*odd"),
        ("exit", StageError, "its process ended by itself with exit status 7"),
    ],
)
def test_a_failed_start_passes_through(how: str, kind: type[Exception], told: str) -> None:
    async def main() -> None:
        lines: list[str] = []
        stage = stage_of("bad_start", {"how": how}, name="tts")
        with pytest.raises(kind, match=told) as raised:
            await stage.start(lines.append)
        assert type(raised.value) is kind
        if how == "stage error":
            assert isinstance(raised.value, StageError) and raised.value.code == "no_device"
        assert lines == LINES or how == "exit"
        assert stage.pid is None and len(asyncio.all_tasks()) == 1
        with pytest.raises(StageError, match="is closed"):
            await rest(stage.open(request()))

    check(main)


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        ("no.such.module:make", "ModuleNotFoundError: No module named 'no'"),
        ("pipelines.fakes.speaker:make", "AttributeError: .*has no attribute 'make'"),
        ("pipelines.fakes.speaker:FakeSpeaker", "TypeError: .*unexpected keyword argument 'odd'"),
    ],
)
def test_a_factory_that_cannot_be_called_is_told(factory: str, told: str) -> None:
    async def main() -> None:
        stage: ProcessStage = ProcessStage("tts", factory, {"odd": 1}, BRISK)
        with pytest.raises(Exception, match=told.partition(": ")[2]):
            await stage.start(lambda line: None)

    check(main)


def test_a_load_without_end_is_ended() -> None:
    async def main() -> None:
        options = replace(BRISK, start_timeout_s=0.5)
        stage = stage_of("bad_start", {"how": "never"}, options)
        with pytest.raises(StageError, match="did not load, and said nothing for 0.5 s"):
            await stage.start(lambda line: None)
        assert stage.pid is None

    check(main)


def test_closing_while_it_loads_ends_the_start() -> None:
    async def main() -> None:
        stage = stage_of("bad_start", {"how": "never"})
        pids: list[int] = []

        def progress(line: str) -> None:
            pids.append(pid_of(stage))

        async def start() -> None:
            with pytest.raises(StageError, match="is closed"):
                await stage.start(progress)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(start())
            await eventually(lambda: len(pids) == 2)
            await stage.close()
        assert not is_alive(pids[0]) and stage.pid is None

    check(main)


def test_a_cancelled_start_leaves_nothing() -> None:
    async def main() -> None:
        stage = stage_of("bad_start", {"how": "never"})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await stage.start(lambda line: None)
        assert stage.pid is None and len(asyncio.all_tasks()) == 1

    check(main)


def test_a_worker_that_gets_on_may_load_for_longer() -> None:
    async def main() -> None:
        link = WorkerLink(START, replace(BRISK, start_timeout_s=0.5), lambda _: None)
        link._told_at_s = -1000.0
        link._receive(Loading("half of it"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await link._ends_within(0.2)
                assert asyncio.get_running_loop().time() <= link._told_at_s + 0.5
                await asyncio.Event().wait()

    run_virtual(main())


def test_progress_that_cannot_be_shown_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        def progress(line: str) -> None:
            raise BrokenPipeError("nobody reads this")

        stage = stage_of("bad_start", {"how": "well"})
        await stage.start(progress)
        assert stage.stats.state == "serving"
        await stage.close()
        told = [record.message for record in caplog.records]
        assert sum("progress cannot be shown" in line for line in told) == len(LINES)

    check(main)


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM, errno.EMFILE])
def test_an_exit_is_seen_where_the_system_cannot_tell_of_it(
    error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)

    async def main() -> None:
        async with serving("obedient") as stage:
            assert await say(stage, "a") == ["a"]
            os.kill(pid_of(stage), signal.SIGKILL)
            await eventually(lambda: stage.restarts == 1)
            assert await say(stage, "b") == ["b"]

    check(main)


def test_a_stage_that_does_not_close_is_ended() -> None:
    async def main() -> None:
        options = replace(BRISK, close_timeout_s=0.2)
        async with serving("unclosable", options=options) as stage:
            assert await say(stage, "a") == ["a"]

    check(main)


def test_a_close_that_takes_long_can_be_cut_short() -> None:
    async def main() -> None:
        options = replace(BRISK, close_timeout_s=10 * WAIT_S)
        async with serving("unclosable", options=options) as stage:
            asyncio.get_running_loop().call_later(0.1, stage.kill)
            async with asyncio.timeout(WAIT_S):
                await stage.close()

    check(main)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_its_birth_does_not_end_a_worker(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """The server may be told to stop, as one of a group, at any moment."""
    begin = subprocess.Popen

    def born(*given: Any, **named: Any) -> Any:
        process = begin(*given, **named)
        os.kill(process.pid, number)
        return process

    monkeypatch.setattr(subprocess, "Popen", born)

    async def main() -> None:
        async with serving("obedient") as stage:
            assert await say(stage, "a") == ["a"]
            assert stage.restarts == 0

    check(main)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_is_the_servers_to_handle(number: signal.Signals) -> None:
    async def main() -> None:
        async with serving("obedient") as stage:
            first = pid_of(stage)
            stream = stage.open(request())
            os.kill(first, number)
            await stream.push("a")
            assert await anext(stream) == "a"
            stream.abort()
            assert pid_of(stage) == first

    check(main)


def test_the_environment_of_a_worker_is_its_own() -> None:
    async def main() -> None:
        options = replace(BRISK, environment={"PARLEY_TEST": "\u00e9 1"})
        async with serving("variable", {"name": "PARLEY_TEST"}, options) as stage:
            assert await say(stage) == ["\u00e9 1"]
        assert "PARLEY_TEST" not in os.environ

    check(main)


def test_a_worker_finds_the_programs_beside_its_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    async def main() -> None:
        async with serving("variable", {"name": "PATH"}, BRISK) as stage:
            assert await say(stage) == [f"{Path(sys.executable).parent}:/usr/bin:/bin"]

    check(main)


def test_a_worker_imports_nothing_heavy_by_itself() -> None:
    async def main() -> None:
        async with serving("modules") as stage:
            modules = set(await say(stage))
            assert {"zmq", "msgpack", "numpy"} <= modules
            assert modules.isdisjoint({"torch", "transformers", "onnxruntime", "scipy", "realtime"})

    check(main)


def test_the_socket_is_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    modes: list[int] = []

    def look(*bound: object) -> None:
        (folder,) = tmp_path.iterdir()
        assert [path.name for path in folder.iterdir()] == ["worker"]
        modes.append(folder.stat().st_mode & 0o777)

    spawn = subprocess.Popen
    monkeypatch.setattr(
        "subprocess.Popen", lambda *given, **named: look() or spawn(*given, **named)
    )

    async def main() -> None:
        async with serving("obedient") as stage:
            left = list(tmp_path.iterdir())  # noqa: ASYNC240
            assert left == [] and await say(stage, "a") == ["a"]

    check(main)
    assert modes == [0o700]


def test_what_a_killed_server_left_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    script = "from pipelines.runtime.worker_folder import SocketFolder as F; F(); print(); input()"
    with subprocess.Popen(
        [sys.executable, "-c", f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}; {script}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdout is not None
        server.stdout.readline()
        (left,) = tmp_path.iterdir()
        (left / "worker").touch()
        others = tmp_path / "parley-of-somebody"
        others.mkdir()
        first = SocketFolder()
        assert set(tmp_path.iterdir()) == {left, others, Path(first.path)}, "it lives"
        server.kill()
    second = SocketFolder()
    assert set(tmp_path.iterdir()) == {others, Path(first.path), Path(second.path)}
    first.remove()
    second.remove()
    assert list(tmp_path.iterdir()) == [others]


def test_a_folder_that_another_sweeps_away_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    make, made = tempfile.mkdtemp, list[str]()

    def make_and_lose(prefix: str) -> str:
        made.append(make(prefix=prefix))
        if len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    monkeypatch.setattr("tempfile.mkdtemp", make_and_lose)
    folder = SocketFolder()
    assert len(made) == 2 and list(tmp_path.iterdir()) == [Path(folder.path)]
    folder.remove()


@contextmanager
def server(then: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process with a worker, and the worker's pid."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT.format(then=then)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        yield parent, pid
        asyncio.run(eventually(lambda: not is_alive(pid)))
        parent.wait(WAIT_S)


@pytest.mark.parametrize("then", ["", "1 / 0"], ids=["left", "crashed"])
def test_a_worker_ends_with_the_servers_loop(then: str) -> None:
    """Nobody closed the stage, and a stream was open."""
    with server(then):
        pass


@pytest.mark.parametrize("is_stuck", [False, True])
def test_a_worker_ends_with_the_server(is_stuck: bool) -> None:
    with server("await asyncio.Event().wait()") as (parent, pid):
        if is_stuck:
            os.kill(pid, signal.SIGSTOP)
        assert is_alive(pid)
        parent.kill()
