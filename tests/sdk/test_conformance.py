"""README claims nothing of the SDKs that their runs do not show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.sdk import conformance
from tests.sdk.parley_process import ROOT
from tests.sdk.runs import Run, Runs
from tests.sdk.sdks import SDKS
from tests.sdk.wire_log import WireLog

README = ROOT / "README.md"


@pytest.fixture
def proved(runs: Runs) -> dict[str, set[str]]:
    return conformance.shown(runs.all())


def test_the_readme_says_no_more_than_the_runs_show(
    proved: dict[str, set[str]], pytestconfig: pytest.Config
) -> None:
    if pytestconfig.getoption("--write-conformance", default=False):
        conformance.write(README, proved)
    claims = conformance.claimed(README.read_text())
    too_much = {name: rows - proved[name] for name, rows in claims.items() if rows - proved[name]}
    assert not too_much
    assert any(claims.values()), "the table is empty: pytest tests/sdk --write-conformance"


def test_every_event_of_the_protocol_is_shown_by_some_sdk(proved: dict[str, set[str]]) -> None:
    seen = set[str]().union(*proved.values())
    assert set(conformance.ROWS) - seen == set()


@pytest.mark.parametrize("name", SDKS)
def test_no_sdk_meets_an_event_without_a_row(proved: dict[str, set[str]], name: str) -> None:
    assert proved[name] - set(conformance.ROWS) == set()


def test_a_table_is_read_as_it_is_written(proved: dict[str, set[str]]) -> None:
    assert conformance.claimed(conformance.section(proved)) == proved


@pytest.mark.parametrize(
    ("end", "proves"),
    [
        ([{"done": True}], True),
        ([{"failed": "no"}], False),
        ([], False),  # its driver went away in the middle
    ],
)
def test_only_a_run_to_the_end_proves_anything(
    end: list[dict[str, Any]], proves: bool, tmp_path: Path
) -> None:
    sdk = SDKS["openai_async"]
    cleared = {"type": "input_audio_buffer.cleared", "event_id": "event_1"}
    run = Run(sdk, sdk.scenarios[0], WireLog(tmp_path / "log"), [{"event": cleared}, *end])
    assert ("input_audio_buffer.cleared" in conformance.shown([run])[sdk.name]) is proves
