"""`parley check` looks into models and recordings: what `serve` would refuse is told before."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from realtime.cli import main
from realtime.commands import check

if find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

from tests.pipelines.stages.tiny_whisper import save_tiny

CONFIG = """\
server: {port: 0}
stages:
  detector: {kind: scripted}
  judge: {kind: scripted}
  recogniser: {kind: whisper_torch, model: FOLDER/ears, device: cpu}
  writer: {kind: sglang, model: FOLDER/words, memory_share: 0.4}
  speaker:
    kind: higgs
    model: FOLDER/voice
    device: cpu
    positions: 400
    voices:
      anna: {audio: voices/anna.wav, transcript: Hello.}
"""
RATE_HZ = 24_000
ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60
PACKAGES = ("torch", "tokenizers", "safetensors", "transformers")
WEIGHTS = "model-00001-of-00002.safetensors"


def tone(seconds: float, level: float = 0.3) -> np.ndarray:
    return (level * np.sin(np.arange(round(seconds * RATE_HZ)) * 0.1)).astype(np.float32)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice, a Whisper, a language model and a recording, all tiny and whole."""
    from pipelines.higgs.codec.config import tiny_codec_config
    from pipelines.higgs.codec.weights import random_codec
    from pipelines.higgs.synthetic.models import tiny_config, write_checkpoint

    folder = tmp_path_factory.mktemp("whole")
    content = tiny_config() | tiny_codec_config().section()
    codec = random_codec(tiny_codec_config()).state_dict()
    write_checkpoint(folder / "voice", content, seed=3, codec=codec)
    save_tiny(folder / "ears")
    shutil.copytree(folder / "voice", folder / "words")
    about = json.dumps({"architectures": ["Qwen3ForCausalLM"]})
    (folder / "words" / "config.json").write_text(about, encoding="utf-8")
    (folder / "voices").mkdir()
    soundfile.write(folder / "voices" / "anna.wav", tone(2.0), RATE_HZ)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = Path(shutil.copytree(whole, tmp_path / "mine"))
    (found / "parley.yaml").write_text(CONFIG.replace("FOLDER", str(found)), encoding="utf-8")
    monkeypatch.setattr(check, "check_gpus", lambda _stages: None)
    monkeypatch.setattr(check, "missing_packages", lambda _stages: [])
    monkeypatch.chdir(found)
    return found


Said = Callable[[], list[str]]


@pytest.fixture
def faults(folder: Path, capsys: pytest.CaptureFixture[str]) -> Said:
    """The lines of what is wrong."""

    def run() -> list[str]:
        code = main(["check", str(folder / "parley.yaml")])
        lines = capsys.readouterr().out.splitlines()
        found = [line.removeprefix("NO  ") for line in lines if line.startswith("NO ")]
        assert code == (1 if found else 0)
        return found

    return run


def test_what_is_whole_passes_without_a_weight_being_read(
    faults: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipelines.higgs.checkpoint.shards import Shards

    def read(*_: object) -> None:
        raise AssertionError("weights were read")

    monkeypatch.setattr(Shards, "read", read)
    monkeypatch.setattr("transformers.WhisperForConditionalGeneration.from_pretrained", read)
    assert faults() == []


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("voice/config.json", b"\xffgarbage", "The voice model {}/voice: {}/voice/config.json is"),
        ("voice/config.json", b'{"architectures": ["LlamaForCausalLM"]}', "['LlamaForCausalLM']"),
        ("voice/tokenizer.json", b"garbage", "{}/voice/tokenizer.json is no tokenizer"),
        (f"voice/{WEIGHTS}", b"garbage", f"{{}}/voice/{WEIGHTS} is damaged or cut off"),
        ("ears/config.json", b"", "{}/ears is no Whisper checkpoint: config.json is not JSON"),
        ("ears/tokenizer.json", b"{}", "{}/ears is no Whisper checkpoint: its tokenizer is not"),
        ("ears/generation_config.json", b"{", "generation_config.json is not JSON"),
        ("ears/model.safetensors", b"garbage", "{}/ears/model.safetensors is damaged or cut off"),
        ("words/config.json", b"{}", "The language model {}/words: {}/words/config.json names no"),
        ("words/tokenizer.json", b"garbage", "{}/words/tokenizer.json is no tokenizer"),
        (f"words/{WEIGHTS}", b"garbage", f"{{}}/words/{WEIGHTS} is damaged or cut off"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_named(
    folder: Path, faults: Said, file: str, content: bytes, told: str
) -> None:
    (folder / file).write_bytes(content)
    [fault] = faults()
    role = {"voice": "speaker", "ears": "recogniser", "words": "writer"}[file.partition("/")[0]]
    assert fault.startswith("models: ") and told.replace("{}", str(folder)) in fault
    assert fault.endswith(f"; correct stages.{role}.model, or put a whole checkpoint there.")


@pytest.mark.parametrize("file", [f"voice/{WEIGHTS}", "ears/model.safetensors", f"words/{WEIGHTS}"])
def test_weights_that_were_cut_short_are_named(folder: Path, faults: Said, file: str) -> None:
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[:-64])
    [fault] = faults()
    assert f"{folder}/{file} is damaged or cut off" in fault


def test_a_model_in_the_place_of_another_is_told(folder: Path, faults: Said) -> None:
    config = folder / "parley.yaml"
    text = config.read_text()
    config.write_text(text.replace("FOLDER/ears", "").replace(f"{folder}/ears", f"{folder}/voice"))
    [fault] = faults()
    assert "describes a model of type 'higgs_multimodal_qwen3', not 'whisper'" in fault
    config.write_text(text.replace(f"{folder}/voice", f"{folder}/ears"))
    [fault] = faults()
    assert "architectures is ['WhisperForConditionalGeneration']" in fault
    config.write_text(text.replace(f"{folder}/words", f"{folder}/voice"))
    [fault] = faults()
    assert "HiggsMultimodalQwen3ForConditionalGeneration, which is no language model" in fault


def test_weights_of_another_size_than_the_configuration_are_told(
    folder: Path, faults: Said
) -> None:
    for name, change in (("voice", {"text_config": {}}), ("ears", {"d_model": 48})):
        path = folder / name / "config.json"
        content: dict[str, Any] = json.loads(path.read_text())
        if name == "voice":
            content["text_config"]["intermediate_size"] += 2
        else:
            content |= change
        path.write_text(json.dumps(content))
    ears, voice = faults()
    assert "its weights lack model.encoder." in ears and "or have it in another shape" in ears
    assert "has shape" in voice


def write(samples: np.ndarray, **options: Any) -> Callable[[Path], object]:
    return lambda path: soundfile.write(path, samples, RATE_HZ, **options)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (write(tone(0.1)), "{}: 100 ms of sound; a voice needs 300 ms or more"),
        (write(tone(2.0, 0.0)), "{}: silent; record it again"),
        (lambda path: path.write_bytes(b"Hello there."), "{}: not a sound file that can be read"),
        (lambda path: path.write_bytes(b""), "{}: not a sound file that can be read (it is empty)"),
        (write(np.full(48_000, np.nan, np.float32), subtype="FLOAT"), "{}: holds samples that are"),
        (write(tone(31.0)), "{}: longer than 30 s; cut it to 5 to 15 s"),
        (write(tone(600.0)), "{}: 27.5 MiB, where 24 MiB are allowed; cut it to 5 to 15 s"),
        (Path.unlink, "there is no file {}: correct the path"),
        (lambda path: (path.unlink(), path.mkdir()), "{} is a folder: name the sound file in it"),
    ],
)
def test_a_recording_that_cannot_be_used_is_told(
    folder: Path, faults: Said, spoil: Callable[[Path], object], told: str
) -> None:
    path = folder / "voices" / "anna.wav"
    spoil(path)
    [fault] = faults()
    place = "voices: stages.speaker.voices.anna.audio: "
    assert fault.startswith(place + told.format(path)), fault


def test_a_recording_that_leaves_no_room_is_told_with_the_least(folder: Path, faults: Said) -> None:
    soundfile.write(folder / "voices" / "anna.wav", tone(20.0), RATE_HZ)
    [fault] = faults()
    assert fault.startswith("models: stages.speaker.voices.anna.audio: ")
    least = fault.partition("raise the positions to ")[2].partition(" or more")[0]
    config = folder / "parley.yaml"
    text = config.read_text()
    for positions, count in ((int(least) - 1, 1), (int(least), 0)):
        config.write_text(text.replace("positions: 400", f"positions: {positions}"))
        assert len(faults()) == count


def test_what_cannot_be_looked_into_is_said(folder: Path) -> None:
    """As where the optional packages are not installed."""
    (folder / "voices" / "anna.wav").write_bytes(b"")
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({PACKAGES}))\n"
        "from realtime.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "check", str(folder / "parley.yaml")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    for name in ("ears", "words", "voice"):
        told = f"note models: {folder / name} was not looked into: ({'|'.join(PACKAGES)}) cannot be"
        assert re.search(told, done.stdout), done.stdout
    assert "NO  packages: The stage higgs needs torch, transformers, " in done.stdout
    assert "NO  voices: stages.speaker.voices.anna.audio: " in done.stdout  # needs none of them
