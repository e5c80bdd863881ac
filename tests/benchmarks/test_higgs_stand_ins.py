"""The models that stand in for real ones make a configuration that a server starts with."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from realtime.settings_file import load_settings
from realtime.stage_settings import Higgs

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

CONFIG = Path(__file__).resolve().parents[2] / "configs" / "higgs.yaml"


@pytest.mark.parametrize(("has_ears", "detector"), [(True, "silero"), (False, "scripted")])
def test_a_tiny_conversation_needs_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_ears: bool, detector: str
) -> None:
    import torch

    from benchmarks.higgs.stand_ins import write_stand_ins

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    stages = load_settings(
        write_stand_ins(tmp_path, CONFIG, is_tiny=True, has_ears=has_ears)
    ).stages
    assert (stages.recogniser.kind, stages.writer.kind) == ("scripted", "scripted")
    assert (stages.detector.kind, stages.judge.kind == "scripted") == (detector, not has_ears)
    assert isinstance(stages.speaker, Higgs)
    assert {path.name for path in Path(stages.speaker.model).iterdir()} >= {
        "config.json",
        "tokenizer.json",
        "model.safetensors",
    }
