"""The Qwen3 decoder over a static key-value cache, in plain torch.

The layers of Qwen3 (Yang et al., "Qwen3 Technical Report", 2025): RMSNorm, grouped-query attention
with an RMSNorm of each query and key head before RoPE, and a SiLU-gated MLP.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from pipelines.higgs.config import BackboneConfig
from pipelines.higgs.model.parameters import HiggsParameters, LayerParameters
from pipelines.higgs.model.rope import RopeTable


@dataclass(frozen=True, slots=True)
class KeyValueCache:
    """keys, values: [layers, slots, kv_heads, positions, head_dim]."""

    keys: Tensor
    values: Tensor

    @classmethod
    def empty(
        cls,
        config: BackboneConfig,
        *,
        slots: int,
        positions: int,
        device: torch.device | str,
        dtype: torch.dtype,
    ) -> KeyValueCache:
        shape = (config.layers, slots, config.kv_heads, positions, config.head_dim)
        return cls(
            torch.zeros(shape, device=device, dtype=dtype),
            torch.zeros(shape, device=device, dtype=dtype),
        )

    def copy(self, source: int, target: int, positions: int) -> None:
        for tensor in (self.keys, self.values):
            tensor[:, target, :, :positions] = tensor[:, source, :, :positions]


@dataclass(frozen=True, slots=True)
class Sight:
    """What the rows of one slot see: its first `length` positions, where `mask` is True.

    rows: which of the step's rows they are; mask: [rows, length].
    """

    slot: int
    rows: Tensor
    length: int
    mask: Tensor


class Backbone:
    """All layers and the final norm; the cache is its only state."""

    def __init__(
        self,
        config: BackboneConfig,
        parameters: HiggsParameters,
        rope: RopeTable,
        cache: KeyValueCache,
    ) -> None:
        self._config = config
        self._parameters = parameters
        self._rope = rope
        self._cache = cache

    def forward(
        self, hidden: Tensor, slots: npt.NDArray[np.int32], positions: npt.NDArray[np.int32]
    ) -> Tensor:
        """Extend the slots' sequences by the rows hidden [R, H], each at its position.

        A row sees its slot's positions up to its own, those of the same step included. Returns
        [R, H] after the final norm.
        """
        seen = sights(slots, positions, hidden.device)
        slot_of = torch.from_numpy(slots.astype(np.int64)).to(hidden.device)
        position_of = torch.from_numpy(positions.astype(np.int64)).to(hidden.device)
        epsilon = self._config.norm_epsilon
        for number, layer in enumerate(self._parameters.layers):
            normed = rms_norm(hidden, layer.input_norm, epsilon)
            queries, keys, values = self._heads(layer, normed, position_of)
            self._cache.keys[number, slot_of, :, position_of] = keys
            self._cache.values[number, slot_of, :, position_of] = values
            attended = attend(self._cache, number, queries, seen)
            hidden = hidden + functional.linear(attended, layer.o)
            normed = rms_norm(hidden, layer.post_norm, epsilon)
            hidden = hidden + gated(layer.gate_up, layer.down, normed)
        return rms_norm(hidden, self._parameters.norm, epsilon)

    def _heads(
        self, layer: LayerParameters, normed: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [R, query_heads, D], keys and values [R, kv_heads, D]."""
        config = self._config
        counts = (config.query_heads, config.kv_heads, config.kv_heads)
        heads = functional.linear(normed, layer.qkv).unflatten(-1, (-1, config.head_dim))
        queries, keys, values = heads.split(counts, dim=1)
        queries = rms_norm(queries, layer.q_norm, config.norm_epsilon)
        keys = rms_norm(keys, layer.k_norm, config.norm_epsilon)
        rotate = self._rope.rotate
        return rotate(queries, positions), rotate(keys, positions), values


def attend(cache: KeyValueCache, layer: int, queries: Tensor, seen: list[Sight]) -> Tensor:
    """Queries [R, query_heads, D] -> [R, query_heads * D]."""
    attended = torch.empty_like(queries)
    for sight in seen:
        of_slot = functional.scaled_dot_product_attention(
            queries[sight.rows].transpose(0, 1).unsqueeze(0),
            cache.keys[layer, sight.slot, :, : sight.length].unsqueeze(0),
            cache.values[layer, sight.slot, :, : sight.length].unsqueeze(0),
            attn_mask=sight.mask,
            enable_gqa=True,
        )
        attended[sight.rows] = of_slot.squeeze(0).transpose(0, 1)
    return attended.flatten(1)


def rms_norm(values: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Over the last dimension, in float32; the weight is applied in the model's precision."""
    exact = values.float()
    exact = exact * torch.rsqrt(exact.square().mean(dim=-1, keepdim=True) + epsilon)
    return weight * exact.to(values.dtype)


def gated(gate_up: Tensor, down: Tensor, normed: Tensor) -> Tensor:
    """The SiLU-gated feed-forward part of a layer: [R, H] -> [R, H]."""
    gate, up = functional.linear(normed, gate_up).chunk(2, dim=-1)
    return functional.linear(functional.silu(gate) * up, down)


def sights(
    slots: npt.NDArray[np.int32], positions: npt.NDArray[np.int32], device: torch.device
) -> list[Sight]:
    """A step's rows by slot; one list serves all layers."""
    found: list[Sight] = []
    for slot in np.unique(slots):
        rows = np.flatnonzero(slots == slot)
        length = int(positions[rows].max()) + 1
        mask = np.arange(length)[None, :] <= positions[rows][:, None]
        of_step, is_seen = torch.from_numpy(rows), torch.from_numpy(mask)
        found.append(Sight(int(slot), of_step.to(device), length, is_seen.to(device)))
    return found
