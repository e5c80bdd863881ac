"""The page's modules, run outside a browser: each file of tests in `client/` under node."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.web.node_script import NODE

FILES = sorted((Path(__file__).parent / "client").glob("*.test.js"))
PATIENCE_S = 60


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".test.js"))
def test_module(path: Path) -> None:
    done = subprocess.run(
        [NODE, "--no-warnings", "--test-reporter=spec", path],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tests 0" not in done.stdout


def test_there_are_files_to_run() -> None:
    assert FILES
