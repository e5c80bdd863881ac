"""Real servers in processes of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
READY = re.compile(r"ready at https?://[^:]+:(\d+)")
STOP_TIMEOUT_S = 20.0
KEY = "a-key-of-the-server"  # without it, or a client secret, nobody comes in


def scripted_settings(words_url: str) -> dict[str, object]:
    """configs/scripted.yaml, with words from a URL: what is answered follows from what is asked."""
    settings = yaml.safe_load((ROOT / "configs" / "scripted.yaml").read_text())
    settings["stages"]["writer"] = {"kind": "openai", "url": words_url, "model": "words"}
    settings["server"] = {"max_sessions": 100, "keys": [KEY]}
    return settings


@dataclass(frozen=True, slots=True)
class ParleyProcess:
    port: int
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """Gone at once, with no word to its clients."""
        self.process.kill()
        self.process.wait(STOP_TIMEOUT_S)


@contextmanager
def parley_process(settings: dict[str, object], folder: Path) -> Iterator[int]:
    """Serves `settings` on a free loopback port, which it gives. folder: for its files."""
    with running_parley(settings, folder) as running:
        yield running.port


@contextmanager
def running_parley(
    settings: dict[str, object], folder: Path, port: int = 0
) -> Iterator[ParleyProcess]:
    """Serves `settings` on that loopback port; 0: on a free one. folder: for its files."""
    config = folder / "parley.yaml"
    config.write_text(yaml.safe_dump(settings))
    arguments = ["-m", "realtime.cli", "serve", str(config), "--port", str(port)]
    with _serving(arguments, folder) as running:
        yield running


@contextmanager
def deaf_process(folder: Path) -> Iterator[int]:
    """A server whose recogniser fails at everything, which no configuration can ask for."""
    with _serving(["-m", "tests.sdk.scripts.deaf_server"], folder) as running:
        yield running.port


@contextmanager
def _serving(arguments: list[str], folder: Path) -> Iterator[ParleyProcess]:
    errors = folder / f"{arguments[1]}.log"
    with (
        errors.open("w") as log,
        subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True
        ) as server,
    ):
        assert server.stdout is not None
        try:
            yield ParleyProcess(_port(server.stdout, errors), server)
        finally:
            server.terminate()
            try:
                server.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                server.kill()
                raise


def _port(lines: Iterator[str], log: Path) -> int:
    for line in lines:
        if found := READY.search(line):
            return int(found[1])
    raise AssertionError(f"the server did not start: {log.read_text()}")
