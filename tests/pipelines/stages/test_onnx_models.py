"""Files that are no models: a start that says so. And a model's run that nobody wants any more."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from onnxruntime.datasets import get_example

from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.ticket import Aborted, Ticket
from pipelines.stages.onnx import open_session, run
from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.stages.turn_smart import SmartTurnJudge
from pipelines.stages.vad_silero import SileroDetector
from pipelines.types import StageError, Urgency


@pytest.mark.parametrize("content", [b"", b"this is no model" * 100])
@pytest.mark.parametrize("kind", ["detector", "judge", "speaker"])
def test_a_file_that_is_no_model_is_named(tmp_path: Path, kind: str, content: bytes) -> None:
    model = tmp_path / "voice.onnx"
    model.write_bytes(content)
    settings = {"phoneme_id_map": {}, "audio": {"sample_rate": 22050}}
    model.with_name("voice.onnx.json").write_text(json.dumps(settings))

    async def main() -> None:
        match kind:
            case "detector":
                stage = SileroDetector(model)
            case "judge":
                stage = SmartTurnJudge(model)
            case _:
                stage = PiperSpeaker(model, cpu=CpuToken())
        try:
            with pytest.raises(StageError, match=r"The model .*voice\.onnx could not be used"):
                await stage.start(lambda _: None)
        finally:
            await stage.close()

    asyncio.run(main())


def test_an_abort_ends_the_run_and_not_the_session() -> None:
    session = open_session(Path(get_example("sigmoid.onnx")), threads=1)
    inputs = {"x": np.zeros((3, 4, 5), np.float32)}
    dead = Ticket("dead", Urgency.STEADY)
    dead.abort()
    with pytest.raises(Aborted):
        run(session, inputs, dead)
    [half] = run(session, inputs, Ticket("alive", Urgency.STEADY))
    assert np.all(half == 0.5)


def test_what_fails_of_itself_is_no_abort() -> None:
    session = open_session(Path(get_example("sigmoid.onnx")), threads=1)
    with pytest.raises(ValueError, match="x"):
        run(session, {"y": np.zeros(1, np.float32)}, Ticket("alive", Urgency.STEADY))
