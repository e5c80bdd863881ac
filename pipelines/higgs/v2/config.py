"""What a v2 checkpoint says of its own shape: as it was published, or as transformers keeps it.

The field names are those of the published configuration class (text_config inside, the codebook
size without begin and end) and of transformers' HiggsAudioV2Config (flat, the codebook size with
both). No published file was at hand to read: that its `audio_dual_ffn_layers` names every layer
follows from its size (2.2e9 parameters of audio layers) and from transformers' class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.higgs.config import (
    AudioConfig,
    BackboneConfig,
    HiggsConfigError,
    count,
    number,
    section,
)
from pipelines.higgs.v2.rope import RopeScaling

ROPE_THETA = 500_000.0  # of Llama 3, where the file does not say

_ADAPTERS = ("dual_ffn", "dual_ffn_fast_forward")  # the same where every layer is dual


@dataclass(frozen=True, slots=True)
class V2Config:
    """rope_scaling: None, where the positions are not stretched."""

    backbone: BackboneConfig
    audio: AudioConfig
    rope_scaling: RopeScaling | None

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> V2Config:
        """Raises HiggsConfigError, naming the field that is missing or cannot be served."""
        if "text_config" in content:
            return _published(content)
        return _converted(content)


def _published(content: Mapping[str, Any]) -> V2Config:
    backbone, scaling = _backbone(section(content, "text_config"), "text_config")
    adapter = content.get("audio_adapter_type")
    if adapter not in _ADAPTERS:
        raise HiggsConfigError(f"audio_adapter_type is {adapter!r}, not one of {_ADAPTERS}")
    dual = content.get("audio_dual_ffn_layers")
    if not isinstance(dual, list) or sorted(dual) != list(range(backbone.layers)):
        raise HiggsConfigError(
            f"audio_dual_ffn_layers is {dual!r}: every one of the {backbone.layers} layers must "
            "have an audio expert"
        )
    if content.get("use_delay_pattern") is not True:
        raise HiggsConfigError("use_delay_pattern must be true")
    for field in ("use_rq_transformer", "use_audio_out_self_attention", "audio_embed_avg"):
        if content.get(field):
            raise HiggsConfigError(f"{field} must be false")
    if content.get("use_audio_out_embed_projector"):
        raise HiggsConfigError("use_audio_out_embed_projector must be false")
    if content.get("audio_decoder_proj_num_layers"):
        raise HiggsConfigError("audio_decoder_proj_num_layers must be 0")
    plain_size = count(content, "config.json", "audio_codebook_size")
    codebooks = count(content, "config.json", "audio_num_codebooks")
    return V2Config(backbone, _audio(content, codebooks, plain_size + 2), scaling)


def _converted(content: Mapping[str, Any]) -> V2Config:
    backbone, scaling = _backbone(content, "config.json")
    codebooks = count(content, "config.json", "num_codebooks")
    size = count(content, "config.json", "codebook_size")
    return V2Config(backbone, _audio(content, codebooks, size), scaling)


def _backbone(text: Mapping[str, Any], name: str) -> tuple[BackboneConfig, RopeScaling | None]:
    hidden_size = count(text, name, "hidden_size")
    query_heads = count(text, name, "num_attention_heads")
    kv_heads = count(text, name, "num_key_value_heads")
    if query_heads % kv_heads:
        raise HiggsConfigError(
            f"{name}: {query_heads} query heads cannot share {kv_heads} key-value heads"
        )
    for field in ("attention_bias", "mlp_bias"):
        if text.get(field):
            raise HiggsConfigError(f"{name}.{field} must be false")
    activation = text.get("hidden_act", "silu")
    if activation != "silu":
        raise HiggsConfigError(f"{name}.hidden_act is {activation!r}, not 'silu'")
    # transformers 5 keeps both in one object, earlier ones the base beside it.
    rope: Mapping[str, Any] = text.get("rope_parameters") or text.get("rope_scaling") or {}
    theta = rope.get("rope_theta") or text.get("rope_theta") or ROPE_THETA
    backbone = BackboneConfig(
        hidden_size=hidden_size,
        intermediate_size=count(text, name, "intermediate_size"),
        layers=count(text, name, "num_hidden_layers"),
        query_heads=query_heads,
        kv_heads=kv_heads,
        head_dim=count(text, name, "head_dim")
        if text.get("head_dim")
        else hidden_size // query_heads,
        vocabulary_size=count(text, name, "vocab_size"),
        norm_epsilon=number(text, name, "rms_norm_eps", 1e-5),
        rope_theta=float(theta),
    )
    return backbone, _scaling(rope, name)


def _scaling(rope: Mapping[str, Any], name: str) -> RopeScaling | None:
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind == "default":
        return None
    if kind != "llama3":
        raise HiggsConfigError(f"{name}: rope type is {kind!r}, not 'llama3' or 'default'")
    try:
        return RopeScaling(
            factor=float(rope["factor"]),
            low=float(rope["low_freq_factor"]),
            high=float(rope["high_freq_factor"]),
            trained_positions=int(rope["original_max_position_embeddings"]),
        )
    except KeyError as error:
        raise HiggsConfigError(f"{name}: the llama3 rope has no {error.args[0]}") from error


def _audio(content: Mapping[str, Any], codebooks: int, codebook_size: int) -> AudioConfig:
    if codebooks < 4:
        # A step is launched before the last one's codes are read: the end must be known in time.
        raise HiggsConfigError(f"the number of codebooks is {codebooks}, not 4 or more")
    audio = AudioConfig(codebooks, codebook_size, is_head_tied=False)
    for field, code in (
        ("audio_stream_bos_id", audio.begin_code),
        ("audio_stream_eos_id", audio.end_code),
    ):
        if content.get(field, code) != code:
            raise HiggsConfigError(
                f"{field} is {content[field]!r}, not {code}: begin and end must be the last two of "
                f"{codebook_size} codes"
            )
    return audio
