"""Loading: the round trip, and every fault named with the tensor or the file it lies in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from pipelines.higgs.checkpoint.loading import codec_tensors, load
from pipelines.higgs.checkpoint.shards import INDEX, SINGLE, CheckpointError
from pipelines.higgs.checkpoint.tensors import (
    AUDIO_EMBEDDING,
    AUDIO_HEAD,
    CODEC_PREFIX,
    places,
    shapes,
)
from pipelines.higgs.codec.config import tiny_codec_config
from pipelines.higgs.codec.weights import load_codec, random_codec
from pipelines.higgs.config import HiggsConfig, HiggsConfigError
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.higgs.synthetic.models import (
    full_config,
    random_parameters,
    tiny_config,
    write_checkpoint,
)

SHARDS = 3
GATE = "body.layers.1.mlp.gate_proj.weight"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    codec = random_codec(tiny_codec_config()).state_dict()
    write_checkpoint(folder, tiny_config(), seed=1, shards=SHARDS, codec=codec)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(written, tmp_path / "spoilt"))


def _load(folder: Path, dtype: torch.dtype = torch.bfloat16) -> HiggsParameters:
    return load(folder, "cpu", dtype, lambda line: None)[1]


def _file_of(folder: Path, name: str) -> Path:
    index = json.loads((folder / INDEX).read_text())
    return folder / index["weight_map"][name]


def _edit(path: Path, change: Callable[[dict[str, Tensor]], None]) -> None:
    content = {name: tensor.clone() for name, tensor in load_file(path).items()}
    change(content)
    save_file(content, path)


def _edit_index(folder: Path, change: Callable[[dict[str, str]], None]) -> None:
    content = json.loads((folder / INDEX).read_text())
    change(content["weight_map"])
    (folder / INDEX).write_text(json.dumps(content))


def _assert_same(left: HiggsParameters, right: HiggsParameters, config: HiggsConfig) -> None:
    of_right = places(config, right)
    for name, place in places(config, left).items():
        assert torch.equal(place, of_right[name]), name


def test_what_was_written_is_what_is_loaded(written: Path) -> None:
    lines: list[str] = []
    config, parameters = load(written, "cpu", torch.bfloat16, lines.append)
    assert config == HiggsConfig.of(tiny_config())
    assert parameters.audio_head is parameters.audio_embedding
    _assert_same(parameters, random_parameters(config, "cpu", torch.bfloat16, seed=1), config)
    assert lines[0] == "voice: checking the checkpoint"
    assert "voice: loading model-00001-of-00003.safetensors" in lines


def test_another_precision_is_converted_to(written: Path) -> None:
    exact, rounded = _load(written, torch.float32), _load(written)
    assert exact.norm.dtype == torch.float32
    assert torch.equal(exact.layers[1].qkv, rounded.layers[1].qkv.float())


def test_the_weights_are_spread_over_the_files(written: Path) -> None:
    index = json.loads((written / INDEX).read_text())["weight_map"]
    sizes = [(written / file).stat().st_size for file in sorted(set(index.values()))]
    assert len(sizes) == SHARDS
    assert min(sizes) > max(sizes) / 3


def test_stacked_projections_keep_their_order(written: Path) -> None:
    stored: dict[str, Tensor] = {}
    for file in written.glob("*.safetensors"):
        stored |= load_file(file)
    layer = _load(written).layers[0]
    prefix = "body.layers.0."
    qkv = [stored[f"{prefix}self_attn.{part}_proj.weight"] for part in "qkv"]
    assert torch.equal(layer.qkv, torch.cat(qkv))
    gate_up = [stored[f"{prefix}mlp.{part}_proj.weight"] for part in ("gate", "up")]
    assert torch.equal(layer.gate_up, torch.cat(gate_up))


def test_one_file_needs_no_index(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, tiny_config(), seed=1, shards=1, dtype=torch.float32)
    assert not (tmp_path / INDEX).exists()
    config, parameters = load(tmp_path, "cpu", torch.float32, lambda line: None)
    _assert_same(parameters, random_parameters(config, "cpu", torch.float32, seed=1), config)


def test_an_untied_head_is_loaded(tmp_path: Path) -> None:
    content = tiny_config()
    content["audio_encoder_config"]["tie_word_embeddings"] = False
    write_checkpoint(tmp_path, content, seed=1)
    parameters = _load(tmp_path)
    assert torch.equal(parameters.audio_head, load_file(_file_of(tmp_path, AUDIO_HEAD))[AUDIO_HEAD])
    assert not torch.equal(parameters.audio_head, parameters.audio_embedding)


def test_heads_that_are_not_used_are_passed_over(folder: Path) -> None:
    heads = ["tied.head.text_head.weight", AUDIO_HEAD]
    file = folder / "model-00001-of-00003.safetensors"
    _edit(file, lambda content: content.update({name: torch.ones(2, 2) for name in heads}))
    _edit_index(folder, lambda index: index.update(dict.fromkeys(heads, file.name)))
    parameters = _load(folder)
    assert parameters.audio_head is parameters.audio_embedding


def test_the_codec_is_read_by_its_own_names(written: Path) -> None:
    model = random_codec(tiny_codec_config())
    tensors = codec_tensors(written)
    assert tensors.keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensors[name], tensor.bfloat16()), name
    load_codec(tensors, tiny_codec_config())


def test_a_checkpoint_without_a_codec_says_so(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, tiny_config(), seed=1)
    with pytest.raises(CheckpointError, match=f"holds no codec: .*{CODEC_PREFIX}"):
        codec_tensors(tmp_path)


def test_missing_tensors_are_counted_and_the_first_named(folder: Path) -> None:
    def drop_layer(index: dict[str, str]) -> None:
        for name in [name for name in index if name.startswith("body.layers.1.")]:
            del index[name]

    _edit_index(folder, drop_layer)
    first = r"body\.layers\.1\.input_layernorm\.weight"
    with pytest.raises(CheckpointError, match=rf"lacks 11 tensors: {first}, .*, \.\.\.$"):
        _load(folder)


def test_a_tensor_that_only_the_index_has_is_named_with_its_file(folder: Path) -> None:
    def drop(content: dict[str, Tensor]) -> None:
        del content[GATE]

    path = _file_of(folder, GATE)
    _edit(path, drop)
    with pytest.raises(CheckpointError, match=f"{path.name} lacks 1 tensor: {GATE}"):
        _load(folder)


def test_a_wrong_shape_is_named(folder: Path) -> None:
    def narrow(content: dict[str, Tensor]) -> None:
        content[GATE] = content[GATE][:, :-1].contiguous()

    _edit(_file_of(folder, GATE), narrow)
    with pytest.raises(CheckpointError, match=rf"{GATE} has shape \[128, 63\], not \[128, 64\]"):
        _load(folder)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn, torch.float64])
def test_a_wrong_dtype_is_named(folder: Path, dtype: torch.dtype) -> None:
    def convert(content: dict[str, Tensor]) -> None:
        content[GATE] = content[GATE].to(dtype)

    _edit(_file_of(folder, GATE), convert)
    with pytest.raises(CheckpointError, match=f"{GATE} is [A-Z0-9_]+, not one of BF16"):
        _load(folder)


def test_a_tensor_that_nothing_is_known_of_is_named(folder: Path) -> None:
    path = _file_of(folder, GATE)
    _edit(path, lambda content: content.update(strange=torch.ones(1)))
    _edit_index(folder, lambda index: index.update(strange=path.name))
    with pytest.raises(CheckpointError, match=r"does not speak of: 1 tensor: strange$"):
        _load(folder)


def test_one_layer_more_than_the_configuration_says_is_refused(folder: Path) -> None:
    content = json.loads((folder / "config.json").read_text())
    content["text_config"]["num_hidden_layers"] = 1
    (folder / "config.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"11 tensors: body\.layers\.1\."):
        _load(folder)


@pytest.mark.parametrize("kept", [0, 4, 100, -10])
def test_a_file_that_is_cut_off_is_named(folder: Path, kept: int) -> None:
    path = _file_of(folder, GATE)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match=f"{path.name} is damaged or cut off"):
        _load(folder)


def test_a_file_with_a_damaged_header_is_named(folder: Path) -> None:
    path = _file_of(folder, AUDIO_EMBEDDING)
    content = bytearray(path.read_bytes())
    content[20:40] = b"\xff" * 20
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=f"{path.name} is damaged or cut off"):
        _load(folder)


def test_a_missing_file_is_named(folder: Path) -> None:
    path = _file_of(folder, GATE)
    path.unlink()
    with pytest.raises(CheckpointError, match=f"{path.name} is missing"):
        _load(folder)


def test_a_folder_without_weights_says_what_it_lacks(folder: Path) -> None:
    (folder / INDEX).unlink()
    with pytest.raises(CheckpointError, match=f"neither {INDEX} nor {SINGLE}"):
        _load(folder)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"weight_map": {}}'])
def test_a_spoilt_index_is_named(folder: Path, content: str) -> None:
    (folder / INDEX).write_text(content)
    with pytest.raises(CheckpointError, match=INDEX):
        _load(folder)


def test_an_index_does_not_lead_out_of_its_folder(folder: Path) -> None:
    _edit_index(folder, lambda index: index.update({GATE: "../elsewhere.safetensors"}))
    with pytest.raises(CheckpointError, match=f"{GATE} is to lie in '../elsewhere"):
        _load(folder)


def test_nothing_is_read_before_all_is_checked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault lies in the last file; no memory is made, let alone filled."""

    def refuse(*anything: Any) -> None:
        raise AssertionError("memory was made")

    monkeypatch.setattr("pipelines.higgs.checkpoint.loading.empty_parameters", refuse)
    path = folder / f"model-0000{SHARDS}-of-0000{SHARDS}.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=path.name):
        _load(folder)


def test_a_configuration_of_another_model_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text('{"architectures": ["Qwen3ForCausalLM"]}')
    with pytest.raises(HiggsConfigError, match="Qwen3ForCausalLM"):
        _load(folder)


def test_the_published_size_has_the_published_tensors() -> None:
    expected = shapes(HiggsConfig.of(full_config()))
    assert len(expected) == 396 + 3
    assert sum(torch.Size(shape).numel() for shape in expected.values()) == 4_043_480_576
    assert expected[AUDIO_EMBEDDING] == (8208, 2560)
    assert expected["body.layers.35.self_attn.q_proj.weight"] == (4096, 2560)
    assert expected["body.layers.0.self_attn.k_norm.weight"] == (128,)
