"""Without torch the tests of this folder are left out, and the run says so."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

HAS_TORCH = find_spec("torch") is not None
collect_ignore_glob = [] if HAS_TORCH else ["*"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not HAS_TORCH:
        terminalreporter.write_line(
            "tests/pipelines/higgs was left out: torch is not installed (see TORCH in the Makefile)"
        )
