"""Spoken questions through unmodified SDKs to the embedded models, and their answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.live_server import silence
from tests.sdk.parley_process import ROOT, parley_process
from tests.sdk.runs import set_stage
from tests.sdk.scenarios import SCRIPTED, TRANSCRIPTION, Scenario, Step, sound, until, update
from tests.sdk.sdks import SDKS
from tests.sdk.strict_events import faults
from tests.spoken import spoken
from tests.wire_invariants import check_order

pytestmark = pytest.mark.models

HEARD = "conversation.item.input_audio_transcription.completed"


@pytest.fixture
def question() -> list[Step]:
    asked = asyncio.run(spoken("What is the capital of France?"))
    return sound(np.concatenate([silence(300), asked, silence(3000)]))


def test_a_spoken_question_is_answered(tmp_path: Path, question: list[Step]) -> None:
    turn = [*question, until(HEARD, "response.done")]
    listening: dict[str, Any] = {"audio": {"input": {"transcription": TRANSCRIPTION}}}
    scenarios = {
        "openai_async": Scenario("question", [*update(**listening), *turn]),
        "npm_agents": Scenario("question", [until("session.updated"), *turn]),
    }
    settings = yaml.safe_load((ROOT / "configs" / "embedded.yaml").read_text())
    with (
        parley_process(settings, tmp_path) as port,
        set_stage({SCRIPTED: port}, tmp_path) as stage,
    ):
        runs = [
            stage.play(SDKS[name], [scenario])["question"] for name, scenario in scenarios.items()
        ]
        stage.recorder.settle()
    for run in runs:
        assert not run.told("failed"), run.told("failed")
        events = run.log.events("server")
        assert [fault for event in events for fault in faults(event)] == []
        check_order(events)
        assert "capital of france" in run.log.last(HEARD)["transcript"].lower()
        reply = run.log.last("response.done")["response"]
        assert reply["status"] == "completed"
        assert "paris" in reply["output"][0]["content"][0]["transcript"].lower()
        assert run.log.events("server", "response.output_audio.delta")
