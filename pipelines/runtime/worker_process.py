"""The process of a worker, as the server holds it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

WORKER = "pipelines.runtime.worker_main"
POLL_S = 0.05  # how soon an exit is seen where the system cannot tell of it
REAP_S = 5.0  # a killed process ends at once, unless a driver holds it


class WorkerProcess:
    """Starts a worker that connects to `endpoint`; `on_exit` gets its exit status, once.

    `stage` names it in the list of the system's processes.

    The worker's standard input is a pipe that never carries anything: when this process dies,
    it closes, and the worker ends. Its output goes where this process's own goes.
    """

    def __init__(
        self,
        stage: str,
        endpoint: str,
        environment: Mapping[str, str],
        on_exit: Callable[[int], None],
    ) -> None:
        """Raises OSError. Takes a few milliseconds, in which the loop waits: the system ends the
        worker when the thread that made it ends, so it must be the loop's own."""
        self._on_exit = on_exit
        self._told = False
        with _signals_held():
            self._process = subprocess.Popen(
                [sys.executable, "-m", WORKER, endpoint, str(os.getpid()), stage],
                stdin=subprocess.PIPE,
                env=_environment(environment),
            )
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._descriptor = _watched(self._process.pid)
        if self._descriptor is None:
            self._look()
        else:
            self._loop.add_reader(self._descriptor, self._look)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def release(self) -> None:
        """Kill it if it still runs, wait for its end, and free what it was watched with."""
        self._told = True
        self._stop_watching()
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.poll() is None:
            self._process.kill()
            deadline_s = self._loop.time() + REAP_S
            while self._process.poll() is None and self._loop.time() < deadline_s:
                await asyncio.sleep(POLL_S / 10)

    def _look(self) -> None:
        status = self._process.poll()
        if status is None:
            if self._descriptor is None:
                self._timer = self._loop.call_later(POLL_S, self._look)
            return
        self._stop_watching()
        if not self._told:
            self._told = True
            self._on_exit(status)

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def _signals_held() -> Generator[None]:
    """Hold back those that end a server: a worker that is born meanwhile holds them back as well,
    until it has said that it ignores them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watched(pid: int) -> int | None:
    """A descriptor that tells of the exit; None where the system has none, or none to spare."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # an old kernel, a sandbox that forbids it, too many open files
        return None


def _environment(additions: Mapping[str, str]) -> dict[str, str]:
    """This process's own, with what the worker needs to find this package, and the programs that
    lie beside its Python: engines compile with a `ninja` that pip has put there."""
    root = str(Path(__file__).resolve().parents[2])
    given = additions.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    path = os.pathsep.join([root, given]) if given else root
    programs = additions.get("PATH", os.environ.get("PATH", os.defpath))
    programs = os.pathsep.join([str(Path(sys.executable).parent), programs])
    return {**os.environ, **additions, "PYTHONPATH": path, "PATH": programs}
