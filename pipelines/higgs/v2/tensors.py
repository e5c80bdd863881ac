"""Which tensors a v2 checkpoint holds, under the names of its form, and where each of them goes.

The published names are those of the published model code, the others those of transformers'
HiggsAudioV2ForConditionalGeneration; transformers' own conversion tells which are the same. Layers
are named alike in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pipelines.higgs.v2.config import V2Config
from pipelines.higgs.v2.parameters import DualLayerParameters, DualParameters, Expert


@dataclass(frozen=True, slots=True)
class TensorNames:
    """Of one form of checkpoint. layers: the prefix before a layer's number.

    split: tensors that may be kept in two, the rows that training left alone first; name to the
        names of both parts. unused: prefixes of tensors that speech does not need.
    """

    text_embedding: str
    audio_embedding: str
    audio_head: str
    norm: str
    layers: str
    split: tuple[tuple[str, tuple[str, str]], ...]
    unused: tuple[str, ...]


_HEADS = "audio_decoder_proj."

PUBLISHED = TensorNames(
    text_embedding="embed_tokens.weight",
    audio_embedding="audio_codebook_embeddings.weight",
    audio_head=f"{_HEADS}audio_lm_head.weight",
    norm="norm.weight",
    layers="layers.",
    split=(
        (
            "embed_tokens.weight",
            ("embed_tokens.embedding_frozen.weight", "embed_tokens.embedding_trainable.weight"),
        ),
        (
            f"{_HEADS}audio_lm_head.weight",
            (
                f"{_HEADS}audio_lm_head.linear_frozen.weight",
                f"{_HEADS}audio_lm_head.linear_trainable.weight",
            ),
        ),
    ),
    unused=(
        f"{_HEADS}text_lm_head.",
        "audio_codebook_weights",
        "rotary_emb.",
        # The encoder of the family's listening models.
        *("audio_tower.", "audio_encoder_proj."),
    ),
)

CONVERTED = TensorNames(
    text_embedding="model.embed_tokens.weight",
    audio_embedding="model.embed_audio_tokens.embed_audio_tokens.weight",
    audio_head="audio_lm_head.weight",
    norm="model.norm.weight",
    layers="model.layers.",
    split=(),
    # A converted checkpoint may keep its heads a second time, under their published names.
    unused=("text_lm_head.", _HEADS, "model.rotary_emb."),
)


def empty_parameters(
    config: V2Config, device: torch.device | str, dtype: torch.dtype
) -> DualParameters:
    """Memory for a model, with no values in it."""
    body, audio = config.backbone, config.audio
    hidden, inner = body.hidden_size, body.intermediate_size
    queries, keys = body.query_heads * body.head_dim, body.kv_heads * body.head_dim
    codes = audio.codebooks * audio.codebook_size

    def empty(*shape: int) -> Tensor:
        return torch.empty(shape, device=device, dtype=dtype)

    def expert() -> Expert:
        return Expert(empty(hidden), empty(hidden), empty(2 * inner, hidden), empty(hidden, inner))

    layers = tuple(
        DualLayerParameters(
            qkv=empty(queries + 2 * keys, hidden),
            o=empty(hidden, queries),
            text=expert(),
            audio=expert(),
        )
        for _ in range(body.layers)
    )
    return DualParameters(
        layers=layers,
        norm=empty(hidden),
        text_embedding=empty(body.vocabulary_size, hidden),
        audio_embedding=empty(codes, hidden),
        audio_head=empty(codes, hidden),
    )


def places(config: V2Config, parameters: DualParameters, names: TensorNames) -> dict[str, Tensor]:
    """Every tensor that a checkpoint must hold, by name: the part of `parameters` it fills."""
    found = {
        names.text_embedding: parameters.text_embedding,
        names.audio_embedding: parameters.audio_embedding,
        names.audio_head: parameters.audio_head,
        names.norm: parameters.norm,
    }
    for number, layer in enumerate(parameters.layers):
        for leaf, place in _layer_places(config, layer).items():
            found[f"{names.layers}{number}.{leaf}.weight"] = place
    return found


def _layer_places(config: V2Config, layer: DualLayerParameters) -> dict[str, Tensor]:
    body = config.backbone
    sizes = [heads * body.head_dim for heads in (body.query_heads, body.kv_heads, body.kv_heads)]
    queries, keys, values = layer.qkv.split(sizes)
    return {
        "self_attn.q_proj": queries,
        "self_attn.k_proj": keys,
        "self_attn.v_proj": values,
        "self_attn.o_proj": layer.o,
        **_expert_places(layer.text, ""),
        **_expert_places(layer.audio, "audio_"),
    }


def _expert_places(expert: Expert, prefix: str) -> dict[str, Tensor]:
    gate, up = expert.gate_up.chunk(2)
    return {
        f"{prefix}input_layernorm": expert.input_norm,
        f"{prefix}post_attention_layernorm": expert.post_norm,
        f"{prefix}mlp.gate_proj": gate,
        f"{prefix}mlp.up_proj": up,
        f"{prefix}mlp.down_proj": expert.down,
    }
