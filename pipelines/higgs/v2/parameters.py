"""The tensors of a v2 model as its decoder uses them: stacked, in one precision."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Expert:
    """What a layer has twice, once for text tokens and once for rows of codes.

    H hidden, I intermediate. input_norm, post_norm: [H]. gate_up: [2 * I, H], the gate first.
    down: [H, I].
    """

    input_norm: Tensor
    post_norm: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True)
class DualLayerParameters:
    """One layer: the attention, which all rows share, and the experts.

    qkv: [(query_heads + 2 * kv_heads) * head_dim, H], queries first, then keys, then values.
    o: [H, query_heads * head_dim].
    """

    qkv: Tensor
    o: Tensor
    text: Expert
    audio: Expert


@dataclass(frozen=True, slots=True)
class DualParameters:
    """A whole model: as HiggsParameters, with layers of two experts and a head of its own.

    text_embedding: [vocabulary, H]. audio_embedding, audio_head: [codebooks * codebook_size, H],
    codebook k in rows k * codebook_size and on. norm: [H], the final one, of all rows.
    """

    layers: tuple[DualLayerParameters, ...]
    norm: Tensor
    text_embedding: Tensor
    audio_embedding: Tensor
    audio_head: Tensor
