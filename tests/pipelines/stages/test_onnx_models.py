"""Files that are no models: a start that says so."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from pipelines.runtime.cpu import CpuToken
from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.stages.turn_smart import SmartTurnJudge
from pipelines.stages.vad_silero import SileroDetector
from pipelines.types import StageError


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
