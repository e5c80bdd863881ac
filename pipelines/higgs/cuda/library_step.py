"""A step whose matrix products are cuBLAS's, with Triton kernels between them.

The right form for steps with prompts in them, whose many rows make the products large; and the form
of every step where the project's own kernels cannot be built.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.cuda.embedding import embed
from pipelines.higgs.cuda.pointwise import add_norm, gate, place_heads
from pipelines.higgs.cuda.sampling import draw
from pipelines.higgs.cuda.workspace import State, Workspace
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.higgs.model.rope import RopeTable


class Attention(Protocol):
    def attend(
        self, queries: Tensor, cache: tuple[Tensor, Tensor], rows: Tensor, attended: Tensor
    ) -> None: ...


class LibraryStep:
    """Puts the kernels of a step on the current stream: packed rows in, drawn codes out."""

    def __init__(
        self,
        config: HiggsConfig,
        parameters: HiggsParameters,
        state: State,
        rope: RopeTable,
        attention: Attention,
    ) -> None:
        self._config = config
        self._parameters = parameters
        self._state = state
        self._rope = (rope.cos, rope.sin)
        self._attention = attention

    def enqueue(self, work: Workspace) -> None:
        parameters, state, audio = self._parameters, self._state, self._config.audio
        epsilon = self._config.backbone.norm_epsilon
        embed(
            work.rows,
            state.last_drawn,
            parameters.text_embedding,
            parameters.audio_embedding,
            work.hidden,
            audio.codebook_size,
        )
        added = None
        for number, layer in enumerate(parameters.layers):
            cache = state.cache(number)
            add_norm(work.hidden, added, layer.input_norm, work.normed, epsilon)
            torch.mm(work.normed, layer.qkv.t(), out=work.projected)
            norms = (layer.q_norm, layer.k_norm)
            place_heads(work.projected, work.rows, norms, self._rope, cache, work.queries, epsilon)
            self._attention.attend(work.queries, cache, work.rows, work.attended)
            torch.mm(work.attended, layer.o.t(), out=work.added)
            add_norm(work.hidden, work.added, layer.post_norm, work.normed, epsilon)
            torch.mm(work.normed, layer.gate_up.t(), out=work.gate_up)
            gate(work.gate_up, work.gated)
            torch.mm(work.gated, layer.down.t(), out=work.added)
            added = work.added
        add_norm(work.hidden, added, parameters.norm, work.normed, epsilon)
        torch.mm(work.normed, parameters.audio_head.t(), out=work.logits)
        draw(work.logits, work.rows, work.drawn, state.last_drawn, audio)
