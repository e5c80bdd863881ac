"""Checkpoints of random weights, written in both forms, and damaged ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import HiggsAudioV2Config

from pipelines.higgs.checkpoint.shards import CheckpointError
from pipelines.higgs.config import HiggsConfigError
from pipelines.higgs.v2.checkpoint import load
from pipelines.higgs.v2.config import V2Config
from pipelines.higgs.v2.parameters import DualParameters
from pipelines.higgs.v2.synthetic import full_config, random_parameters, write_checkpoint
from pipelines.higgs.v2.tensors import CONVERTED, PUBLISHED, empty_parameters, places
from tests.pipelines.higgs.v2.judge import AUDIO, CONFIG, judge_of
from tests.pipelines.higgs.v2.judge import PUBLISHED as CONTENT

PARAMETERS = random_parameters(CONFIG, "cpu", torch.float32, seed=9)


def loaded(folder: Path) -> DualParameters:
    config, parameters = load(folder, "cpu", torch.float32, lambda _: None)
    assert config == CONFIG
    return parameters


def assert_same(found: DualParameters) -> None:
    expected = places(CONFIG, PARAMETERS, PUBLISHED)
    for name, place in places(CONFIG, found, PUBLISHED).items():
        assert torch.equal(place, expected[name]), name


def change(folder: Path, edit: Callable[[dict[str, Tensor]], None]) -> None:
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        folder / "model.safetensors",
    )


@pytest.fixture(params=[False, True], ids=["published", "converted"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write_checkpoint(tmp_path, CONTENT, PARAMETERS, is_converted=request.param)
    return tmp_path


def test_both_forms_come_back_as_they_were(folder: Path) -> None:
    said: list[str] = []
    _, parameters = load(folder, "cpu", torch.float32, said.append)
    assert_same(parameters)
    assert said == ["voice: checking the checkpoint", "voice: loading model.safetensors"]


def test_the_precision_is_the_one_asked_for(folder: Path) -> None:
    _, parameters = load(folder, "cpu", torch.bfloat16, lambda _: None)
    assert parameters.layers[0].audio.down.dtype == torch.bfloat16
    assert torch.equal(parameters.audio_head, PARAMETERS.audio_head.bfloat16())


def test_names_are_those_that_transformers_writes(tmp_path: Path) -> None:
    """A checkpoint that transformers itself saved, under whatever names it has today."""
    judge: Any = judge_of(PARAMETERS)
    judge.save_pretrained(tmp_path)
    written = set(load_file(tmp_path / "model.safetensors"))
    assert written == set(places(CONFIG, PARAMETERS, CONVERTED))
    assert_same(loaded(tmp_path))


def test_published_names_become_those_of_transformers_by_its_own_rules() -> None:
    """The three renamings of its conversion, written out anew."""
    renamed = {
        "audio_codebook_embeddings.": "model.embed_audio_tokens.embed_audio_tokens.",
        "audio_decoder_proj.": "",
        **{name: f"model.{name}" for name in ("embed_tokens.", "layers.", "norm.")},
    }
    published = places(CONFIG, PARAMETERS, PUBLISHED)
    converted = places(CONFIG, PARAMETERS, CONVERTED)
    for name, place in published.items():
        prefix = next(prefix for prefix in renamed if name.startswith(prefix))
        other = converted.pop(renamed[prefix] + name.removeprefix(prefix))
        assert other.data_ptr() == place.data_ptr()
    assert not converted


@pytest.mark.parametrize("rows", [1, 100, 299])
def test_tables_that_training_cut_in_two(tmp_path: Path, rows: int) -> None:
    write_checkpoint(tmp_path, CONTENT, PARAMETERS, is_converted=False)

    def cut(tensors: dict[str, Tensor]) -> None:
        table = tensors.pop("embed_tokens.weight")
        tensors["embed_tokens.embedding_frozen.weight"] = table[:rows]
        tensors["embed_tokens.embedding_trainable.weight"] = table[rows:]
        head = tensors.pop("audio_decoder_proj.audio_lm_head.weight")
        tensors["audio_decoder_proj.audio_lm_head.linear_frozen.weight"] = head[:7]
        tensors["audio_decoder_proj.audio_lm_head.linear_trainable.weight"] = head[7:]

    change(tmp_path, cut)
    assert_same(loaded(tmp_path))


def test_the_published_size_is_the_one_that_its_authors_tell() -> None:
    """3.6e9 parameters of a language model and 2.2e9 of audio: so every layer has two experts."""
    config = V2Config.of(full_config())
    # transformers' defaults are of the published model, but for the size of a codebook.
    default = HiggsAudioV2Config(codebook_size=1026, architectures=["HiggsAudioV2Model"])
    assert V2Config.of(default.to_dict()).backbone == config.backbone
    assert V2Config.of(default.to_dict()).audio == config.audio
    place_of = places(config, empty_parameters(config, "meta", torch.bfloat16), PUBLISHED)
    sizes = {name: place.numel() for name, place in place_of.items()}
    audio = sum(size for name, size in sizes.items() if "audio" in name)
    text = sum(sizes.values()) - audio + sizes["embed_tokens.weight"]  # its head is not tied
    assert round(text / 1e9, 1) == 3.6
    assert round(audio / 1e9, 1) == 2.2


def test_what_speech_does_not_need_is_passed_over(folder: Path) -> None:
    change(folder, lambda tensors: tensors.update({"audio_decoder_proj.text_lm_head.weight": ONE}))
    assert_same(loaded(folder))


ONE = torch.ones(1)


def test_a_missing_expert_is_named(folder: Path) -> None:
    gone: list[str] = []

    def lose(tensors: dict[str, Tensor]) -> None:
        gone.extend(name for name in tensors if name.endswith("layers.1.audio_mlp.up_proj.weight"))
        del tensors[gone[0]]

    change(folder, lose)
    with pytest.raises(CheckpointError, match=gone[0].replace(".", r"\.")):
        loaded(folder)


def test_an_unknown_tensor_is_named(folder: Path) -> None:
    change(folder, lambda tensors: tensors.update({"layers.9.audio_attn.weight": ONE}))
    with pytest.raises(CheckpointError, match=r"layers\.9\.audio_attn\.weight"):
        loaded(folder)


def test_a_wrong_shape_is_named(folder: Path) -> None:
    def grow(tensors: dict[str, Tensor]) -> None:
        name = next(name for name in tensors if name.endswith("audio_lm_head.weight"))
        tensors[name] = torch.cat((tensors[name], tensors[name]))

    change(folder, grow)
    rows = AUDIO.codebooks * AUDIO.codebook_size
    with pytest.raises(
        CheckpointError, match=rf"audio_lm_head\.weight has shape \[{2 * rows}, 64\]"
    ):
        loaded(folder)


def test_halves_that_do_not_make_a_whole_are_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, CONTENT, PARAMETERS, is_converted=False)

    def cut(tensors: dict[str, Tensor]) -> None:
        table = tensors.pop("embed_tokens.weight")
        tensors["embed_tokens.embedding_frozen.weight"] = table[:10]
        tensors["embed_tokens.embedding_trainable.weight"] = table[11:]

    change(tmp_path, cut)
    with pytest.raises(CheckpointError, match=r"embedding_trainable\.weight has shape \[289, 64\]"):
        loaded(tmp_path)


def test_a_quantised_tensor_is_refused(folder: Path) -> None:
    def round_off(tensors: dict[str, Tensor]) -> None:
        name = next(name for name in tensors if name.endswith("layers.0.mlp.down_proj.weight"))
        tensors[name] = tensors[name].to(torch.int8)

    change(folder, round_off)
    with pytest.raises(CheckpointError, match=r"mlp\.down_proj\.weight is I8"):
        loaded(folder)


def test_a_file_that_was_cut_off_is_named(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"model\.safetensors is damaged"):
        loaded(folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("audio_adapter_type", "stack"),
        ("audio_dual_ffn_layers", [0]),
        ("audio_dual_ffn_layers", None),
        ("use_delay_pattern", False),
        ("use_rq_transformer", True),
        ("use_audio_out_self_attention", True),
        ("use_audio_out_embed_projector", True),
        ("audio_embed_avg", True),
        ("audio_decoder_proj_num_layers", 2),
        ("audio_num_codebooks", 2),
        ("audio_num_codebooks", "8"),
        ("audio_stream_bos_id", 3),
        ("audio_stream_eos_id", 99),
        ("text_config", {}),
        ("text_config", {**CONTENT["text_config"], "attention_bias": True}),
        ("text_config", {**CONTENT["text_config"], "hidden_act": "gelu"}),
        ("text_config", {**CONTENT["text_config"], "num_key_value_heads": 3}),
        ("text_config", {**CONTENT["text_config"], "rope_scaling": {"rope_type": "yarn"}}),
        ("text_config", {**CONTENT["text_config"], "rope_scaling": {"rope_type": "llama3"}}),
    ],
)
def test_a_configuration_that_cannot_be_run(tmp_path: Path, field: str, value: object) -> None:
    write_checkpoint(tmp_path, CONTENT, PARAMETERS, is_converted=False)
    (tmp_path / "config.json").write_text(json.dumps({**CONTENT, field: value}))
    with pytest.raises(HiggsConfigError):
        loaded(tmp_path)
