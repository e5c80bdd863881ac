"""The tensors that a step's kernels hand to one another, and the state that lasts between steps.

All are allocated once, for the largest step: a graph holds their addresses.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pipelines.higgs.config import HiggsConfig


@dataclass(frozen=True, slots=True)
class State:
    """keys, values: bfloat16 [layers, slots, kv_heads, positions, D]; last_drawn: int32
    [slots, codebooks]. What a cache holds beyond a slot's positions is never read."""

    keys: Tensor
    values: Tensor
    last_drawn: Tensor

    @classmethod
    def empty(
        cls, config: HiggsConfig, *, slots: int, positions: int, device: torch.device
    ) -> State:
        backbone = config.backbone
        shape = (backbone.layers, slots, backbone.kv_heads, positions, backbone.head_dim)
        return cls(
            torch.empty(shape, dtype=torch.bfloat16, device=device),
            torch.empty(shape, dtype=torch.bfloat16, device=device),
            torch.zeros((slots, config.audio.codebooks), dtype=torch.int32, device=device),
        )

    def cache(self, layer: int) -> tuple[Tensor, Tensor]:
        return self.keys[layer], self.values[layer]

    def copy(self, source: int, target: int, positions: int) -> None:
        for tensor in (self.keys, self.values):
            tensor[:, target, :, :positions].copy_(tensor[:, source, :, :positions])


@dataclass(frozen=True, slots=True)
class Workspace:
    """Of a step of R rows; bfloat16 where nothing else is said.

    rows: int32 [R, packing width]. hidden: [R, H], the residual stream. normed: [R, H].
    projected: [R, (query_heads + 2 * kv_heads) * D]. queries, attended: [R, query_heads * D].
    added: [R, H], what a layer's half adds. gate_up: [R, 2 * I]. gated: [R, I].
    logits: [R, codebooks * codebook_size]. drawn: int32 [R, codebooks].
    """

    rows: Tensor
    hidden: Tensor
    normed: Tensor
    projected: Tensor
    queries: Tensor
    attended: Tensor
    added: Tensor
    gate_up: Tensor
    gated: Tensor
    logits: Tensor
    drawn: Tensor

    @classmethod
    def of(cls, config: HiggsConfig, *, rows: int, width: int, device: torch.device) -> Workspace:
        backbone, audio = config.backbone, config.audio

        def empty(columns: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
            return torch.zeros((rows, columns), dtype=dtype, device=device)

        heads = backbone.query_heads + 2 * backbone.kv_heads
        return cls(
            rows=empty(width, torch.int32),
            hidden=empty(backbone.hidden_size),
            normed=empty(backbone.hidden_size),
            projected=empty(heads * backbone.head_dim),
            queries=empty(backbone.query_heads * backbone.head_dim),
            attended=empty(backbone.query_heads * backbone.head_dim),
            added=empty(backbone.hidden_size),
            gate_up=empty(2 * backbone.intermediate_size),
            gated=empty(backbone.intermediate_size),
            logits=empty(audio.codebooks * audio.codebook_size),
            drawn=empty(audio.codebooks, torch.int32),
        )

    def of_rows(self, count: int) -> Workspace:
        """The part that a step of `count` rows uses; it shares this one's memory."""
        return Workspace(
            rows=self.rows[:count],
            hidden=self.hidden[:count],
            normed=self.normed[:count],
            projected=self.projected[:count],
            queries=self.queries[:count],
            attended=self.attended[:count],
            added=self.added[:count],
            gate_up=self.gate_up[:count],
            gated=self.gated[:count],
            logits=self.logits[:count],
            drawn=self.drawn[:count],
        )
