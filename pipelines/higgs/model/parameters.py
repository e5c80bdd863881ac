"""The tensors of a model in the form that the decoders use them: stacked, in one precision."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class LayerParameters:
    """One decoder layer; H hidden, I intermediate, D head_dim.

    qkv: [(query_heads + 2 * kv_heads) * D, H], queries first, then keys, then values.
    gate_up: [2 * I, H], the gate first. o: [H, query_heads * D]. down: [H, I].
    input_norm, post_norm: [H]. q_norm, k_norm: [D], of each head before RoPE.
    """

    input_norm: Tensor
    qkv: Tensor
    q_norm: Tensor
    k_norm: Tensor
    o: Tensor
    post_norm: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True)
class HiggsParameters:
    """A whole backbone with its embeddings.

    text_embedding: [vocabulary, H]. audio_embedding: [codebooks * codebook_size, H], codebook k in
    rows k * codebook_size and on. audio_head: the same shape; the same tensor where it is tied.
    norm: [H], the final one.
    """

    layers: tuple[LayerParameters, ...]
    norm: Tensor
    text_embedding: Tensor
    audio_embedding: Tensor
    audio_head: Tensor
