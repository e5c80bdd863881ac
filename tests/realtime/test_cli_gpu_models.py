"""`parley models` and `parley check` with models that are folders."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pipelines.types import StageError
from realtime.cli import main
from realtime.commands import check, gpus, models
from realtime.stage_checks import missing_packages
from tests.pipelines.test_weights_repository import CONTENTS, NAME, SHARDS, Hub, hub, put

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
    monkeypatch.setattr(gpus, "check_gpus", lambda _stages: None)
    monkeypatch.setattr(check, "missing_packages", lambda _stages: [])
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


def test_every_model_that_cannot_be_fetched_is_named_at_once(
    hub: Hub, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.failure = ConnectionError("no route")
    text = config.read_text().replace(str(config.parent / "higgs"), "maker/voice", 1)
    config.write_text(text)
    assert main(["models", "fetch", "--config", str(config)]) == 1
    said = capsys.readouterr().err
    assert f"The repository {NAME} " in said and "The repository maker/voice " in said


def test_made_up_weights_are_not_fetched(
    hub: Hub, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = config.read_text().replace("share: 0.4", "share: 0.4\n    load_format: dummy")
    config.write_text(text)
    folder = config.parent / "store" / "maker" / "small-model"
    assert main(["models", "fetch", "--config", str(config)]) == 0
    assert {path.name for path in folder.glob("*.safetensors")} == set()
    assert f"{NAME}: 3 files in {folder}" in capsys.readouterr().out
    hub.failure = ConnectionError("nobody needs it")
    assert main(["models", "fetch", "--config", str(config)]) == 0
    assert capsys.readouterr().out == ""
    hub.failure = None
    config.write_text(text.replace("dummy", "auto"))
    assert main(["models", "fetch", "--config", str(config)]) == 0
    assert {path.name for path in folder.glob("*.safetensors")} == set(SHARDS)


def refuse(_stages: object) -> None:
    raise StageError("placement_refused", "no GPU can be seen here")


def test_without_its_gpu_nothing_is_fetched(
    hub: Hub,
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(gpus, "check_gpus", refuse)
    assert main(["models", "fetch", "--config", str(config)]) == 1
    assert "no GPU can be seen here" in capsys.readouterr().err and hub.fetched == []
    monkeypatch.setattr(sys, "argv", ["gpus", str(config)])
    with pytest.raises(SystemExit, match="parley: no GPU can be seen here"):
        gpus.main()
    monkeypatch.setattr(gpus, "check_gpus", lambda _stages: None)
    gpus.main()


def test_check_names_packages_that_are_missing(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "missing_packages", missing_packages)
    for name in ("torch", "sglang"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["check", str(config)]) == 1
    said = capsys.readouterr().out
    assert "NO  packages: The stage sglang needs sglang" in said
    assert "NO  packages: The stage higgs needs torch" in said


def test_a_server_that_lacks_packages_says_so_in_one_line(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = config.read_text().replace("device: cpu", "device: cpu\n    process: inline")
    config.write_text(text)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["serve", str(config), "--port", "0"]) == 1
    [line] = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("parley: The stage higgs needs torch, ") and "pip install" in line


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


def test_check_names_the_parts_of_a_voice(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(config.parent / "store" / "maker" / "small-model")
    folder = config.parent / "higgs"
    about_v2 = json.dumps({"architectures": ["HiggsAudioModel"]}).encode()
    slow = {**CONTENTS, "config.json": about_v2, "anna.wav": b"RIFF", "vocab.json": b"{}"}
    put(folder, slow)
    (folder / "tokenizer.json").unlink()
    assert main(["check", str(config)]) == 1
    said = capsys.readouterr().out
    assert f"The model in {folder} is not whole: tokenizer.json is missing or empty." in said
    (folder / "tokenizer.json").write_bytes(b"{}")
    assert main(["check", str(config)]) == 1
    said = capsys.readouterr().out
    assert (
        f"its codec, a repository of its own, belongs into {folder / 'codec'}, but it has" in said
    )
    put(folder / "codec", {"model.safetensors": b"weights"})
    assert main(["check", str(config)]) == 0


def test_the_list_has_the_known_folders(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert models.list_models() == 0
    [line] = [row for row in capsys.readouterr().out.splitlines() if "bosonai" in row]
    assert line.split() == ["gpu", "missing", "9320.0", "MB", "bosonai/higgs-audio-v3-tts-4b"]
