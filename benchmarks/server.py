"""A server to measure: one that runs already, or a child of the benchmark's own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from benchmarks.processes import resident_mib

SCRIPTED = str(Path(__file__).resolve().parents[1] / "configs" / "scripted.yaml")  # no models
READY_LIMIT_S = 600.0  # models may have to be fetched first
STOP_LIMIT_S = 60.0  # an engine on a GPU takes its time to end
POLL_S = 0.25


@dataclass(frozen=True, slots=True)
class Server:
    url: str  # of the realtime endpoint
    pid: int | None  # of a child of ours

    def memory_mib(self) -> float | None:
        """Resident memory of the child and all its children now."""
        return None if self.pid is None else sum(map(resident_mib, _tree(self.pid)))

    def health(self) -> dict[str, Any]:
        """What the server says of itself."""
        where = urlsplit(self.url)
        scheme = "https" if where.scheme == "wss" else "http"
        with urllib.request.urlopen(f"{scheme}://{where.netloc}/health", timeout=5) as answer:
            return json.load(answer)


@contextmanager
def serving(
    url: str | None, config: str | None, settings: dict[str, dict[str, Any]] | None = None
) -> Iterator[Server]:
    """`url` as it is, or a server started with `config` and stopped at the end.

    settings: what the started server's configuration says differently, by section and name.
    """
    if url is not None:
        yield Server(url, None)
        return
    if settings:
        with tempfile.TemporaryDirectory(prefix="parley-bench-") as folder:
            changed = Path(folder) / "server.yaml"
            changed.write_text(_changed(config, settings))
            with serving(None, str(changed)) as server:
                yield server
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "realtime.cli", "serve", "--port", str(port)]
    if config is not None:
        command.insert(4, config)
    log = Path(os.environ.get("PARLEY_BENCH_LOG", os.devnull)).open("wb")
    child = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _await_ready(child, config, f"http://127.0.0.1:{port}/health")
        yield Server(f"ws://127.0.0.1:{port}/v1/realtime", child.pid)
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        log.close()


def _changed(config: str | None, settings: dict[str, dict[str, Any]]) -> str:
    """The text of a configuration with some settings replaced."""
    whole = yaml.safe_load(Path(config).read_text()) if config is not None else {}
    for section, values in settings.items():
        whole[section] = {**(whole.get(section) or {}), **values}
    return yaml.safe_dump(whole)


def _await_ready(child: subprocess.Popen[bytes], config: str | None, health: str) -> None:
    end_s = time.monotonic() + READY_LIMIT_S
    while time.monotonic() < end_s:
        if child.poll() is not None:
            command = " ".join(["parley serve", *([config] if config else [])])
            sys.exit(f"the server ended before it was ready; `{command}` says why")
        try:
            with urllib.request.urlopen(health, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(POLL_S)
    sys.exit(f"the server was not ready within {READY_LIMIT_S:.0f} s")


def _tree(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found = [pid]
    if children.exists():
        for child in children.read_text().split():
            found += _tree(int(child))
    return found
