"""A driver that fails says why to every test that asks, and spoils no other SDK's runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.sdk.runs import Run, Runs, Stage, set_stage
from tests.sdk.scenarios import Scenario
from tests.sdk.sdks import SDKS, Sdk

BROKEN = "npm_agents"


@dataclass(slots=True)
class BrokenStage(Stage):
    asked: list[str] = field(default_factory=list[str])

    def play(self, sdk: Sdk, scenarios: Sequence[Scenario]) -> dict[str, Run]:
        self.asked.append(sdk.name)
        (self.folder / sdk.name).mkdir()
        assert sdk.name != BROKEN, "the driver ended with 1"
        return {}


def test_a_driver_that_fails_is_started_once_and_its_failure_told_each_time(
    tmp_path: Path,
) -> None:
    with set_stage({}, tmp_path) as set_up:
        stage = BrokenStage(tmp_path, {}, set_up.recorder, set_up.authority)
        runs = Runs(stage)
        for _ in range(2):
            with pytest.raises(AssertionError, match="ended with 1"):
                runs.of(BROKEN)
        assert runs.of("openai_async") == {}
    assert sorted(stage.asked) == sorted(SDKS)
