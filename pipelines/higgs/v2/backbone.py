"""Llama's decoder with two experts a layer ("DualFFN"), over a static key-value cache.

A row of codes goes through the audio expert's norms and feed-forward, a text token through the
text expert's; attention and the final norm are of both. As transformers' HiggsAudioV2Model does
it: heads have no norm of their own, and positions are stretched as in Llama 3.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from pipelines.higgs.config import BackboneConfig
from pipelines.higgs.model.backbone import KeyValueCache, attend, gated, rms_norm, sights
from pipelines.higgs.model.rope import RopeTable
from pipelines.higgs.v2.parameters import DualLayerParameters, DualParameters, Expert


class DualBackbone:
    """All layers and the final norm; the cache is its only state."""

    def __init__(
        self,
        config: BackboneConfig,
        parameters: DualParameters,
        rope: RopeTable,
        cache: KeyValueCache,
    ) -> None:
        self._config = config
        self._parameters = parameters
        self._rope = rope
        self._cache = cache

    def forward(
        self,
        hidden: Tensor,
        is_audio: npt.NDArray[np.bool_],
        slots: npt.NDArray[np.int32],
        positions: npt.NDArray[np.int32],
    ) -> Tensor:
        """Extend the slots' sequences by the rows hidden [R, H], each at its position.

        is_audio [R]: which rows are of codes. A row sees its slot's positions up to its own, those
        of the same step included. Returns [R, H] after the final norm.
        """
        seen = sights(slots, positions, hidden.device)
        slot_of = torch.from_numpy(slots.astype(np.int64)).to(hidden.device)
        position_of = torch.from_numpy(positions.astype(np.int64)).to(hidden.device)
        text_rows = torch.from_numpy(np.flatnonzero(~is_audio)).to(hidden.device)
        audio_rows = torch.from_numpy(np.flatnonzero(is_audio)).to(hidden.device)
        epsilon = self._config.norm_epsilon
        for number, layer in enumerate(self._parameters.layers):
            parts = [
                (expert, rows)
                for expert, rows in ((layer.text, text_rows), (layer.audio, audio_rows))
                if len(rows)
            ]
            normed = torch.empty_like(hidden)
            for expert, rows in parts:
                normed[rows] = rms_norm(hidden[rows], expert.input_norm, epsilon)
            queries, keys, values = self._heads(layer, normed, position_of)
            self._cache.keys[number, slot_of, :, position_of] = keys
            self._cache.values[number, slot_of, :, position_of] = values
            attended = attend(self._cache, number, queries, seen)
            hidden = hidden + functional.linear(attended, layer.o)
            for expert, rows in parts:
                hidden[rows] = hidden[rows] + _feed_forward(expert, hidden[rows], epsilon)
        return rms_norm(hidden, self._parameters.norm, epsilon)

    def _heads(
        self, layer: DualLayerParameters, normed: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [R, query_heads, D], keys and values [R, kv_heads, D]."""
        config = self._config
        counts = (config.query_heads, config.kv_heads, config.kv_heads)
        heads = functional.linear(normed, layer.qkv).unflatten(-1, (-1, config.head_dim))
        queries, keys, values = heads.split(counts, dim=1)
        rotate = self._rope.rotate
        return rotate(queries, positions), rotate(keys, positions), values


def _feed_forward(expert: Expert, hidden: Tensor, epsilon: float) -> Tensor:
    return gated(expert.gate_up, expert.down, rms_norm(hidden, expert.post_norm, epsilon))
