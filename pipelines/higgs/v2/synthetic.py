"""v2 models of random weights, of any size: what demonstrations and tests run.

They say nothing, but in the shapes of a real model and through its files.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from pipelines.higgs.checkpoint.shards import SINGLE
from pipelines.higgs.parts import CODEC_FOLDER
from pipelines.higgs.synthetic.tokenizer import synthetic_tokenizer
from pipelines.higgs.v2.config import V2Config
from pipelines.higgs.v2.parameters import DualParameters
from pipelines.higgs.v2.prompt import NEEDED
from pipelines.higgs.v2.tensors import (
    CONVERTED,
    PUBLISHED,
    TensorNames,
    empty_parameters,
    places,
)

_LOGIT_DEVIATION = 5.0  # the likeliest codes then hold nearly all of the probability
BYTES = 256  # tokens of a tiny vocabulary before the special ones

_LAYER_GAIN = 0.5  # of a layer's output, so that no layer drowns the others


def published_config(
    *,
    hidden_size: int = 64,
    intermediate_size: int = 96,
    layers: int = 2,
    query_heads: int = 4,
    kv_heads: int = 2,
    vocabulary: int = 300,
    codebooks: int = 8,
    plain_codes: int = 16,
) -> dict[str, Any]:
    """A `config.json` in the structure of the published one; by default of a tiny model."""
    text = {
        "model_type": "llama",
        "hidden_size": hidden_size,
        "intermediate_size": intermediate_size,
        "num_hidden_layers": layers,
        "num_attention_heads": query_heads,
        "num_key_value_heads": kv_heads,
        "head_dim": hidden_size // query_heads,
        "vocab_size": vocabulary,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "rope_theta": 500_000.0,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 32.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    }
    return {
        "architectures": ["HiggsAudioModel"],
        "model_type": "higgs_audio",
        "audio_adapter_type": "dual_ffn_fast_forward",
        "audio_dual_ffn_layers": list(range(layers)),
        "audio_num_codebooks": codebooks,
        "audio_codebook_size": plain_codes,
        "audio_stream_bos_id": plain_codes,
        "audio_stream_eos_id": plain_codes + 1,
        "use_delay_pattern": True,
        "text_config": text,
    }


def full_config() -> dict[str, Any]:
    """The `config.json` of the published size: 5.8 billion parameters, the text head included."""
    return published_config(
        hidden_size=3072,
        intermediate_size=8192,
        layers=28,
        query_heads=24,
        kv_heads=8,
        vocabulary=128_256,
        codebooks=8,
        plain_codes=1024,
    )


def converted_config(published: dict[str, Any]) -> dict[str, Any]:
    """The same model's `config.json` as transformers keeps it."""
    text = dict(published["text_config"])
    rope = {**text.pop("rope_scaling"), "rope_theta": text.pop("rope_theta")}
    del text["model_type"]
    return {
        **text,
        "architectures": ["HiggsAudioV2ForConditionalGeneration"],
        "model_type": "higgs_audio_v2",
        "rope_parameters": rope,
        "num_codebooks": published["audio_num_codebooks"],
        "codebook_size": published["audio_codebook_size"] + 2,
        "audio_stream_bos_id": published["audio_stream_bos_id"],
        "audio_stream_eos_id": published["audio_stream_eos_id"],
    }


def random_parameters(
    config: V2Config,
    device: torch.device | str,
    dtype: torch.dtype,
    seed: int,
    *,
    ending_codebooks: int = 1,
) -> DualParameters:
    """A model made in memory. ending_codebooks: in how many of them, from the first, EOC is drawn
    as often as any other code; in the others, and BOC everywhere, hardly ever."""
    parameters = empty_parameters(config, device, dtype)
    for name, place in places(config, parameters, PUBLISHED).items():
        generator = torch.Generator().manual_seed(seed ^ zlib.crc32(name.encode()))
        place.copy_(_random(config, name, tuple(place.shape), generator, ending_codebooks))
    return parameters


def write_checkpoint(
    folder: Path,
    published: dict[str, Any],
    parameters: DualParameters,
    *,
    is_converted: bool,
    codec: Mapping[str, Tensor] | None = None,
) -> None:
    """config.json, tokenizer.json and one file of tensors, in either form.

    codec: its tensors, for the folder that a voice is loaded with.
    """
    names = CONVERTED if is_converted else PUBLISHED
    content = converted_config(published) if is_converted else published
    tensors = {
        name: place.contiguous().clone()
        for name, place in places(V2Config.of(published), parameters, names).items()
    }
    tensors.update(_unused(names, parameters.text_embedding))
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / SINGLE, metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(content, indent=2), encoding="utf-8")
    tokenizer().save(str(folder / "tokenizer.json"))
    if codec is not None:
        (folder / CODEC_FOLDER).mkdir(exist_ok=True)
        save_file(dict(codec), folder / CODEC_FOLDER / SINGLE)


def tokenizer() -> Tokenizer:
    """All bytes, then what prompts are made of."""
    return synthetic_tokenizer({name: BYTES + place for place, name in enumerate(NEEDED)})


def _unused(names: TensorNames, table: Tensor) -> dict[str, Tensor]:
    """What real checkpoints hold beside: a head for text."""
    return {f"{names.unused[0]}weight": table.clone()}


def _random(
    config: V2Config,
    name: str,
    shape: tuple[int, ...],
    generator: torch.Generator,
    ending_codebooks: int,
) -> Tensor:
    if len(shape) == 1:  # norms of ones would hide one that is applied in the wrong place
        return 0.5 + torch.rand(shape, generator=generator)
    values = torch.randn(shape, generator=generator)
    if name in (PUBLISHED.text_embedding, PUBLISHED.audio_embedding):
        return values
    values /= math.sqrt(shape[1])
    if name.endswith(("o_proj.weight", "down_proj.weight")):
        return values * _LAYER_GAIN
    if name == PUBLISHED.audio_head:
        audio = config.audio
        by_codebook = values.view(audio.codebooks, audio.codebook_size, -1)
        by_codebook[:, audio.begin_code] = 0.0
        by_codebook[ending_codebooks:, audio.end_code] = 0.0
        return values * _LOGIT_DEVIATION
    return values
