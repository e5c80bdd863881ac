"""Which tensors a checkpoint holds, and where each of them goes.

A checkpoint keeps the projections apart; the decoders use them stacked. So memory for the stacked
ones is made first, and a checkpoint's tensors are copied into their parts of it one by one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.model.parameters import HiggsParameters, LayerParameters

TEXT_EMBEDDING = "tied.embedding.text_embedding.weight"
AUDIO_EMBEDDING = "tied.embedding.modality_embeddings.0.embedding.weight"
HEAD_PREFIX = "tied.head."
AUDIO_HEAD = HEAD_PREFIX + "modality_heads.0.weight"
CODEC_PREFIX = "tied.embedding.modality_embeddings.0.model."
FINAL_NORM = "body.norm.weight"


def empty_parameters(
    config: HiggsConfig, device: torch.device | str, dtype: torch.dtype
) -> HiggsParameters:
    """Memory for a model, with no values in it."""
    body, audio = config.backbone, config.audio
    hidden, inner = body.hidden_size, body.intermediate_size
    queries, keys = body.query_heads * body.head_dim, body.kv_heads * body.head_dim

    def empty(*shape: int) -> Tensor:
        return torch.empty(shape, device=device, dtype=dtype)

    layers = tuple(
        LayerParameters(
            input_norm=empty(hidden),
            qkv=empty(queries + 2 * keys, hidden),
            q_norm=empty(body.head_dim),
            k_norm=empty(body.head_dim),
            o=empty(hidden, queries),
            post_norm=empty(hidden),
            gate_up=empty(2 * inner, hidden),
            down=empty(hidden, inner),
        )
        for _ in range(body.layers)
    )
    audio_embedding = empty(audio.codebooks * audio.codebook_size, hidden)
    is_tied = audio.is_head_tied
    return HiggsParameters(
        layers=layers,
        norm=empty(hidden),
        text_embedding=empty(body.vocabulary_size, hidden),
        audio_embedding=audio_embedding,
        audio_head=audio_embedding if is_tied else torch.empty_like(audio_embedding),
    )


def places(config: HiggsConfig, parameters: HiggsParameters) -> dict[str, Tensor]:
    """Every tensor that a checkpoint must hold, by name: the part of `parameters` it fills."""
    found = {
        TEXT_EMBEDDING: parameters.text_embedding,
        AUDIO_EMBEDDING: parameters.audio_embedding,
        FINAL_NORM: parameters.norm,
    }
    if not config.audio.is_head_tied:
        found[AUDIO_HEAD] = parameters.audio_head
    for number, layer in enumerate(parameters.layers):
        for leaf, place in _layer_places(config, layer).items():
            found[f"body.layers.{number}.{leaf}.weight"] = place
    return found


def shapes(config: HiggsConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor that a checkpoint must hold, by name."""
    without_memory = empty_parameters(config, "meta", torch.bfloat16)
    return {name: tuple(place.shape) for name, place in places(config, without_memory).items()}


def _layer_places(config: HiggsConfig, layer: LayerParameters) -> dict[str, Tensor]:
    body = config.backbone
    sizes = [heads * body.head_dim for heads in (body.query_heads, body.kv_heads, body.kv_heads)]
    queries, keys, values = layer.qkv.split(sizes)
    gate, up = layer.gate_up.chunk(2)
    return {
        "input_layernorm": layer.input_norm,
        "self_attn.q_proj": queries,
        "self_attn.k_proj": keys,
        "self_attn.v_proj": values,
        "self_attn.q_norm": layer.q_norm,
        "self_attn.k_norm": layer.k_norm,
        "self_attn.o_proj": layer.o,
        "post_attention_layernorm": layer.post_norm,
        "mlp.gate_proj": gate,
        "mlp.up_proj": up,
        "mlp.down_proj": layer.down,
    }
