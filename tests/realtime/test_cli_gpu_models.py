"""`parley models` and `parley check` with models that are folders."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.types import StageError
from pipelines.weights import local_store
from pipelines.weights.catalogue import ModelFile
from realtime.cli import main
from realtime.commands import check, gpus, models, serve
from realtime.stage_checks import missing_packages
from tests.pipelines.test_weights_repository import NAME, SHARDS, Hub, hub, put

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


def test_without_its_gpu_models_are_fetched_and_it_is_noted(
    hub: Hub,
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A store may be filled by a machine that serves nothing."""
    monkeypatch.setattr(gpus, "check_gpus", refuse)
    monkeypatch.setattr(gpus, "sees_gpus", lambda: False)
    assert main(["models", "fetch", "--config", str(config)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "note: no GPU is seen here; what is fetched can be used where one is"
    assert hub.fetched != [] and f"{NAME}: 5 files in" in said[-1]


def test_a_gpu_that_is_too_small_is_noted_with_the_reason(
    hub: Hub,
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(gpus, "check_gpus", refuse)
    monkeypatch.setattr(gpus, "sees_gpus", lambda: True)
    assert main(["models", "fetch", "--config", str(config)]) == 0
    assert capsys.readouterr().out.startswith("note: no GPU can be seen here\n")


def test_a_missing_gpu_is_told_before_packages_are_installed(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus, "check_gpus", refuse)
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


@pytest.mark.parametrize("process", ["inline", "worker"])
def test_a_server_names_all_packages_that_it_lacks_before_it_loads_anything(
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    process: str,
) -> None:
    def make(*_: object, **__: object) -> None:
        raise AssertionError("stages were made")

    text = config.read_text().replace("device: cpu", f"device: cpu\n    process: {process}")
    config.write_text(text)
    for name in ("torch", "sglang"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(serve, "create_app", make)
    assert main(["serve", str(config), "--port", "0"]) == 1
    captured = capsys.readouterr()
    writer, speaker = captured.err.strip().splitlines()
    assert writer.startswith("parley: The stage sglang needs sglang, ")
    assert speaker.startswith("The stage higgs needs torch, ")
    assert all("pip install -e '.[higgs,sglang]'" in line for line in (writer, speaker))
    assert captured.out == ""


def test_the_list_has_the_known_folders(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert models.list_models() == 0
    [line] = [row for row in capsys.readouterr().out.splitlines() if "bosonai" in row]
    assert line.split() == ["gpu", "missing", "9320.0", "MB", "bosonai/higgs-audio-v3-tts-4b"]


def test_verify_says_how_many_are_not_there(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ModelFile("vad/toy.bin", 3, hashlib.sha256(b"toy").hexdigest(), (), "", "")
    other = replace(file, path="asr/other.bin")
    monkeypatch.setattr(local_store, "GROUPS", {"toys": (file,), "others": (other,)})
    monkeypatch.setattr(models, "GROUPS", local_store.GROUPS)
    put(config.parent / "store" / "vad", {"toy.bin": b"toy"})
    assert models.verify_models(None) == 0
    assert capsys.readouterr().out.splitlines() == [
        "every file that is there is as it should be",
        "4 of those that are known are not there: `parley models list` names them",
    ]
    assert models.list_models() == 0
    assert capsys.readouterr().out.count(" missing ") == 4
    voice = config.parent / "store" / "bosonai" / "higgs-audio-v3-tts-4b"
    put(voice, {"config.json": b"{}"})
    assert models.verify_models(None) == 1
    said = capsys.readouterr().out
    assert f"higgs-audio-v3-tts-4b in {voice} is not as it should be: it has neither" in said
    assert "3 of those that are known are not there" in said and "every file" not in said
    assert models.verify_models("toys") == 0
    assert capsys.readouterr().out == "every file is as it should be\n"
