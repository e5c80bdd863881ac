"""A folder is looked at without its weights: what loading would refuse is refused, and no more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipelines.higgs import inspection
from pipelines.higgs.assembly import Size
from pipelines.higgs.checkpoint.shards import INDEX, CheckpointError, Shards
from pipelines.higgs.cloning.recording import ReferenceRefused
from pipelines.higgs.codec.config import frame_count, tiny_codec_config
from pipelines.higgs.codec.weights import CodecEncoder, CodecWeightsError, random_codec
from pipelines.higgs.config import HiggsConfigError
from pipelines.higgs.loading import load_voice
from pipelines.higgs.member import V2, V3
from pipelines.higgs.synthetic.models import tiny_config
from pipelines.higgs.synthetic.models import write_checkpoint as write_v3
from pipelines.higgs.text.tokenizer import HiggsTokenizerError
from pipelines.higgs.v2.synthetic import random_parameters, write_checkpoint
from tests.pipelines.higgs.v2.judge import CONFIG, PUBLISHED

SECOND = "model-00002-of-00002.safetensors"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {member.name: tmp_path_factory.mktemp(member.name) for member in (V3, V2)}
    codec = random_codec(tiny_codec_config()).state_dict()
    write_v3(folders[V3.name], tiny_config() | tiny_codec_config().section(), seed=3, codec=codec)
    v2_codec = replace(tiny_codec_config(), codebook_size=CONFIG.audio.begin_code)
    parameters = random_parameters(CONFIG, "cpu", torch.float32, seed=2)
    tensors = random_codec(v2_codec).state_dict()
    content = PUBLISHED | v2_codec.section()
    write_checkpoint(folders[V2.name], content, parameters, is_converted=False, codec=tensors)
    return folders


@pytest.mark.parametrize("name", [V3.name, V2.name])
def test_a_whole_voice_passes_and_no_weight_is_read(
    folders: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> None:
        raise AssertionError("weights were read")

    monkeypatch.setattr(Shards, "read", read)
    inspection.inspect(folders[name])


@pytest.mark.parametrize("samples", [7_200, 24_000, 24_119, 24_121, 30_000, 48_500, 123_456])
def test_a_reference_takes_the_positions_that_are_told(
    folders: dict[str, Path], samples: int
) -> None:
    sound = np.random.default_rng(0).normal(0, 0.1, samples).astype(np.float32)
    codes = CodecEncoder(random_codec(tiny_codec_config())).encode(sound)
    assert len(codes) == frame_count(max(samples, 24_000))
    size = Size(streams=1, positions=300)
    voice = load_voice(folders[V3.name], size=size, device="cpu", progress=lambda _: None)
    told = inspection.inspect(folders[V3.name]).preamble_rows(samples, "so it was")
    assert told == len(voice.preamble(codes, "so it was").items)


def test_a_v2_voice_needs_a_transcript(folders: dict[str, Path]) -> None:
    with pytest.raises(ReferenceRefused, match="write what is said"):
        inspection.inspect(folders[V2.name]).preamble_rows(48_000, None)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def reshape(path: Path) -> None:
    content = json.loads(path.read_text())
    content["text_config"]["intermediate_size"] += 2
    path.write_text(json.dumps(content))


def misspell(path: Path) -> None:
    content = json.loads(path.read_text())
    content["text_config"]["rms_norm_eps"] = "1e-6 or so"
    path.write_text(json.dumps(content))


def resize_codec(path: Path) -> None:
    content: dict[str, Any] = json.loads(path.read_text())
    content["codec_config"]["semantic_inner"] += 2
    path.write_text(json.dumps(content))


def write(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def of(content: Any) -> Callable[[Path], object]:
    return write(json.dumps(content).encode())


@pytest.mark.parametrize(
    ("file", "spoil", "error", "words"),
    [
        ("config.json", write(b""), HiggsConfigError, "not JSON"),
        ("config.json", write(b"\xff\x00garbage"), HiggsConfigError, "not JSON"),
        ("config.json", of([]), HiggsConfigError, "no object"),
        ("config.json", of({"architectures": 5}), HiggsConfigError, "those that can be run"),
        ("config.json", of({"architectures": ["Qwen3ForCausalLM"]}), HiggsConfigError, "Qwen3"),
        ("config.json", misspell, HiggsConfigError, "rms_norm_eps is '1e-6 or so'"),
        ("config.json", reshape, CheckpointError, "has shape"),
        ("config.json", resize_codec, CodecWeightsError, "has shape"),
        ("tokenizer.json", write(b"garbage"), HiggsTokenizerError, "is no tokenizer"),
        ("tokenizer.json", write(b"{}"), HiggsTokenizerError, "is no tokenizer"),
        (SECOND, write(b"garbage"), CheckpointError, "damaged or cut off"),
        (SECOND, write(b""), CheckpointError, "damaged or cut off"),
        (SECOND, cut, CheckpointError, "damaged or cut off"),
        (SECOND, Path.unlink, CheckpointError, "is missing"),
        (INDEX, write(b"{}"), CheckpointError, "weight_map"),
    ],
)
def test_what_loading_refuses_is_refused_before(
    folders: dict[str, Path],
    tmp_path: Path,
    file: str,
    spoil: Callable[[Path], object],
    error: type[Exception],
    words: str,
) -> None:
    folder = Path(shutil.copytree(folders[V3.name], tmp_path / "voice"))
    spoil(folder / file)
    with pytest.raises(error, match=words):
        inspection.inspect(folder)
    size = Size(streams=1, positions=300)
    with pytest.raises(error, match=words):
        load_voice(folder, size=size, device="cpu", progress=lambda _: None)


def test_the_codec_of_a_v2_voice_is_looked_at(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders[V2.name], tmp_path / "voice"))
    cut(folder / "codec" / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"codec.model\.safetensors is damaged or cut off"):
        inspection.inspect(folder)
