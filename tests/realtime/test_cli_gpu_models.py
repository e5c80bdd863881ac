"""`parley models` and `parley check` with models that are folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from realtime.cli import main
from realtime.commands import check, models
from tests.pipelines.test_weights_repository import CONTENTS, NAME, Hub, hub, put

__all__ = ["hub"]  # a fixture

CONFIG = f"""\
stages:
  detector: {{kind: scripted}}
  judge: {{kind: scripted}}
  recogniser: {{kind: scripted}}
  writer:
    kind: sglang
    model: {NAME}
    memory_share: 0.4
  speaker:
    kind: higgs
    model: FOLDER
    device: cpu
    voices:
      anna: {{audio: FOLDER/anna.wav, transcript: Hello.}}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARLEY_MODELS", str(tmp_path / "store"))
    monkeypatch.setattr(check, "check_gpus", lambda _stages: None)
    path = tmp_path / "parley.yaml"
    path.write_text(CONFIG.replace("FOLDER", str(tmp_path / "higgs")), encoding="utf-8")
    return path


def test_what_a_configuration_names_is_fetched_once(
    hub: Hub, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "fetch", "--config", str(config)]) == 0
    assert f"{NAME}: 5 files in {config.parent / 'store'}" in capsys.readouterr().out
    hub.fetched.clear()
    assert main(["models", "fetch", "--config", str(config)]) == 0
    assert hub.fetched == [] and capsys.readouterr().out == ""


def test_a_fetch_that_fails_is_one_line_with_a_cure(
    hub: Hub, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.failure = ConnectionError("no route")
    assert main(["models", "fetch", "--config", str(config)]) == 1
    [line] = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(f"parley: The repository {NAME} (main) cannot be read")
    assert str(config.parent / "store" / "maker" / "small-model") in line


def test_check_names_each_model_and_each_voice_that_is_missing(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = config.parent
    assert main(["check", str(config)]) == 1
    said = capsys.readouterr().out
    assert f"NO  models: The model {NAME} is not in the store." in said
    assert f"NO  models: There is no model folder at {folder / 'higgs'}: correct the path." in said
    assert f"NO  voices: there is no such file: anna ({folder / 'higgs' / 'anna.wav'})" in said
    put(folder / "store" / "maker" / "small-model")
    put(folder / "higgs", {**CONTENTS, "anna.wav": b"RIFF"})
    assert main(["check", str(config)]) == 0
    said = capsys.readouterr().out
    assert "ok  models: all there" in said and "ok  voices: anna" in said
    assert "writer: sglang, in a process of its own" in said


def test_the_list_has_the_known_folders(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert models.list_models() == 0
    [line] = [row for row in capsys.readouterr().out.splitlines() if "bosonai" in row]
    assert line.split() == ["gpu", "missing", "9320.0", "MB", "bosonai/higgs-audio-v3-tts-4b"]
