"""Models of random weights, of any size: what benchmarks, demonstrations and tests run.

They say nothing, but at the speed of a real model, in its shapes and through its files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipelines.higgs.checkpoint import tensors
from pipelines.higgs.checkpoint.shards import INDEX, SINGLE
from pipelines.higgs.config import ARCHITECTURE, HiggsConfig
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.higgs.synthetic.tensors import random_tensor
from pipelines.higgs.synthetic.tokenizer import special_ids, synthetic_tokenizer

_DTYPES = {torch.bfloat16: "BF16", torch.float32: "F32"}


def tiny_config(*, codebooks: int = 8, layers: int = 2, vocabulary: int = 400) -> dict[str, Any]:
    """The `config.json` of a model that runs anywhere: 32 codes a codebook, hidden size 64."""
    return model_config(
        hidden_size=64,
        intermediate_size=128,
        layers=layers,
        query_heads=4,
        kv_heads=2,
        head_dim=16,
        vocabulary=vocabulary,
        codebooks=codebooks,
        codebook_size=34,
    )


def full_config() -> dict[str, Any]:
    """The `config.json` of the published size: 4.0 billion parameters beside the codec."""
    return model_config(
        hidden_size=2560,
        intermediate_size=9728,
        layers=36,
        query_heads=32,
        kv_heads=8,
        head_dim=128,
        vocabulary=151_936,
        codebooks=8,
        codebook_size=1026,
    )


def model_config(
    *,
    hidden_size: int,
    intermediate_size: int,
    layers: int,
    query_heads: int,
    kv_heads: int,
    head_dim: int,
    vocabulary: int,
    codebooks: int,
    codebook_size: int,
    is_head_tied: bool = True,
) -> dict[str, Any]:
    """A `config.json` in the structure of the published one, `rope_theta` null included."""
    text = {
        "model_type": "qwen3",
        "hidden_size": hidden_size,
        "intermediate_size": intermediate_size,
        "num_hidden_layers": layers,
        "num_attention_heads": query_heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "vocab_size": vocabulary,
        "max_position_embeddings": 32_768,
        "max_window_layers": layers,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "attention_bias": False,
        "tie_word_embeddings": True,
        "rope_theta": None,
        "use_sliding_window": False,
    }
    audio = {
        "model_type": "higgs_audio_encoder",
        "encoder_type": "discrete",
        "num_codebooks": codebooks,
        "vocab_size": codebook_size,
        "out_dim": hidden_size,
        "tie_word_embeddings": is_head_tied,
        "use_delay_pattern": True,
    }
    return {
        "architectures": [ARCHITECTURE],
        "model_type": "higgs_multimodal_qwen3",
        "audio_token_id": -100,
        "mel_per_sample": 8,
        "is_composition": True,
        "torch_dtype": "bfloat16",
        "text_config": text,
        "audio_encoder_config": audio,
    }


def random_parameters(
    config: HiggsConfig,
    device: torch.device | str,
    dtype: torch.dtype,
    seed: int,
    *,
    typical_rows: int | None = None,
) -> HiggsParameters:
    """A model made in the device's memory; the same values that `write_checkpoint` writes there.

    typical_rows: after about how many rows on average EOC is drawn, at the usual sampling; None:
        never.
    """
    parameters = tensors.empty_parameters(config, device, dtype)
    for name, place in tensors.places(config, parameters).items():
        place.copy_(random_tensor(config, name, tuple(place.shape), device, seed, typical_rows))
    return parameters


def write_checkpoint(
    folder: Path,
    content: Mapping[str, Any],
    seed: int,
    *,
    shards: int = 2,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.bfloat16,
    typical_rows: int | None = None,
    codec: Mapping[str, Tensor] | None = None,
) -> None:
    """Write config.json, tokenizer.json and the weights, under the published names.

    content: of config.json. shards: 1 writes a single file without an index. typical_rows: see
    `random_parameters`; the weights are those that it makes on this device. codec: the codec's
    tensors by their names within it. Beside the codec, one tensor at a time is in memory.
    """
    config = HiggsConfig.of(content)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(content, indent=2), encoding="utf-8")
    specials = special_ids(config.backbone.vocabulary_size)
    synthetic_tokenizer(specials).save(str(folder / "tokenizer.json"))

    given = {tensors.CODEC_PREFIX + name: tensor for name, tensor in (codec or {}).items()}
    shapes = tensors.shapes(config) | {name: tuple(each.shape) for name, each in given.items()}
    parts = _divided(shapes, shards)
    files = [SINGLE] if shards == 1 else [_shard_name(n, shards) for n in range(1, shards + 1)]
    for file, names in zip(files, parts, strict=True):

        def made(names: list[str] = names) -> Iterator[Tensor]:
            for name in names:
                if name in given:
                    yield given[name]
                else:
                    yield random_tensor(config, name, shapes[name], device, seed, typical_rows)

        _write_shard(folder / file, {name: shapes[name] for name in names}, made(), dtype)
    if shards > 1:
        file_of = {name: file for file, names in zip(files, parts, strict=True) for name in names}
        total = sum(_elements(shape) for shape in shapes.values()) * dtype.itemsize
        index = {"metadata": {"total_size": total}, "weight_map": file_of}
        (folder / INDEX).write_text(json.dumps(index, indent=2), encoding="utf-8")


def _write_shard(
    path: Path, shapes: Mapping[str, tuple[int, ...]], made: Iterator[Tensor], dtype: torch.dtype
) -> None:
    """The safetensors format: the header's length, the header as JSON, the tensors' bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + _elements(shape) * dtype.itemsize
        header[name] = {
            "dtype": _DTYPES[dtype],
            "shape": list(shape),
            "data_offsets": [start, end],
        }
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)  # the tensors begin at a multiple of eight bytes
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little"))
        file.write(head)
        for tensor in made:
            values = tensor.to(dtype).contiguous().flatten().view(torch.uint8)
            file.write(values.cpu().numpy().data)


def _divided(shapes: Mapping[str, tuple[int, ...]], parts: int) -> list[list[str]]:
    """Names in their order, in `parts` groups of about one size."""
    total = sum(_elements(shape) for shape in shapes.values())
    groups: list[list[str]] = [[] for _ in range(parts)]
    before = 0
    for name, shape in shapes.items():
        groups[before * parts // total].append(name)
        before += _elements(shape)
    return groups


def _elements(shape: tuple[int, ...]) -> int:
    return torch.Size(shape).numel()


def _shard_name(number: int, shards: int) -> str:
    return f"model-{number:05d}-of-{shards:05d}.safetensors"
