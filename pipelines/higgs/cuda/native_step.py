"""A step of the project's own kernels: five a layer, each started while the one before it ends.

They are the layer's four products and its attention; all else happens where a product's result is
still in registers. See native/product.cuh.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.cuda.choices import Choices, Kind, Work, choices
from pipelines.higgs.cuda.embedding import embed
from pipelines.higgs.cuda.native import DrawTask, Target, check
from pipelines.higgs.cuda.native_attention import NativeAttention
from pipelines.higgs.cuda.workspace import State, Workspace
from pipelines.higgs.model.parameters import HiggsParameters, LayerParameters
from pipelines.higgs.model.rope import RopeTable

MAX_ROWS = 64  # of `product.cuh`
_TILE_ROWS = 128


class NativeStep:
    """`steps.Step`, for at most MAX_ROWS rows."""

    def __init__(
        self,
        config: HiggsConfig,
        parameters: HiggsParameters,
        state: State,
        rope: RopeTable,
        library: ctypes.CDLL,
        choose: Callable[[int], Choices] = choices,
    ) -> None:
        self._config = config
        self._parameters = parameters
        self._state = state
        self._rope = rope
        self._library = library
        self._choose = choose
        self._attention = NativeAttention(library, choose)
        self._parts = config.backbone.hidden_size // _TILE_ROWS
        self._squares = torch.zeros((self._parts, MAX_ROWS), device=state.keys.device)

    def enqueue(self, work: Workspace) -> None:
        parameters, state, audio = self._parameters, self._state, self._config.audio
        embed(
            work.rows,
            state.last_drawn,
            parameters.text_embedding,
            parameters.audio_embedding,
            work.hidden,
            audio.codebook_size,
        )
        norms = [layer.input_norm for layer in parameters.layers[1:]]
        self._scale(work, parameters.layers[0].input_norm)
        parts = 1
        for number, layer in enumerate(parameters.layers):
            next_norm = (*norms, parameters.norm)[number]
            self._project_heads(work, layer, number, parts)
            cache = state.cache(number)
            self._attention.attend(work.queries, cache, work.rows, work.attended)
            self._add(Work.OUT, work, layer.o, work.attended, layer.post_norm)
            parts = self._parts
            self._gate(work, layer)
            self._add(Work.DOWN, work, layer.down, work.gated, next_norm)
        target = self._target(work, parts, columns=work.logits.shape[1], out=work.logits)
        self._multiply(Work.HEAD, Kind.LOGITS, parameters.audio_head, work.normed, target)
        self._draw(work)

    def _scale(self, work: Workspace, norm: Tensor) -> None:
        count, columns = work.hidden.shape
        error = self._library.parley_scale(
            work.hidden.data_ptr(),
            norm.data_ptr(),
            work.normed.data_ptr(),
            self._squares.data_ptr(),
            count,
            columns,
            torch.cuda.current_stream().cuda_stream,
        )
        check(error, "the first norm")

    def _project_heads(
        self, work: Workspace, layer: LayerParameters, number: int, parts: int
    ) -> None:
        backbone = self._config.backbone
        keys, values = self._state.cache(number)
        target = self._target(work, parts, columns=0, out=work.queries)
        target.packed = work.rows.data_ptr()
        target.packed_width = work.rows.shape[1]
        target.query_heads = backbone.query_heads
        target.key_heads = backbone.kv_heads
        target.positions = keys.shape[2]
        target.query_norm = layer.q_norm.data_ptr()
        target.key_norm = layer.k_norm.data_ptr()
        target.cos = self._rope.cos.data_ptr()
        target.sin = self._rope.sin.data_ptr()
        target.keys = keys.data_ptr()
        target.values = values.data_ptr()
        self._multiply(Work.QKV, Kind.HEADS, layer.qkv, work.normed, target)

    def _add(
        self, product: Work, work: Workspace, weights: Tensor, inputs: Tensor, norm: Tensor
    ) -> None:
        """To the residual stream, and make what the norm `norm` will be applied to."""
        target = self._target(work, parts=0, columns=work.hidden.shape[1], out=None)
        target.residual = work.hidden.data_ptr()
        target.next_norm = norm.data_ptr()
        target.scaled = work.normed.data_ptr()
        target.next_squares = self._squares.data_ptr()
        self._multiply(product, Kind.ADD, weights, inputs, target)

    def _gate(self, work: Workspace, layer: LayerParameters) -> None:
        target = self._target(work, self._parts, columns=work.gated.shape[1], out=work.gated)
        self._multiply(Work.GATE_UP, Kind.GATE, layer.gate_up, work.normed, target)

    def _draw(self, work: Workspace) -> None:
        audio = self._config.audio
        task = DrawTask(
            logits=work.logits.data_ptr(),
            packed=work.rows.data_ptr(),
            drawn=work.drawn.data_ptr(),
            last_drawn=self._state.last_drawn.data_ptr(),
            packed_width=work.rows.shape[1],
            codebooks=audio.codebooks,
            size=audio.codebook_size,
            begin_code=audio.begin_code,
        )
        stream = torch.cuda.current_stream().cuda_stream
        check(self._library.parley_draw(task, len(work.rows), stream), "drawing")

    def _target(self, work: Workspace, parts: int, *, columns: int, out: Tensor | None) -> Target:
        """What all kinds need; parts: of the squares that the input must still be scaled by."""
        backbone = self._config.backbone
        return Target(
            squares=self._squares.data_ptr(),
            part_count=parts,
            inverse_hidden=1.0 / backbone.hidden_size,
            epsilon=backbone.norm_epsilon,
            rows=len(work.hidden),
            columns=columns,
            out=None if out is None else out.data_ptr(),
        )

    def _multiply(
        self, product: Work, kind: Kind, weights: Tensor, inputs: Tensor, target: Target
    ) -> None:
        choice = self._choose(len(inputs))[product]
        error = self._library.parley_multiply(
            int(kind),
            weights.data_ptr(),
            inputs.data_ptr(),
            target,
            *weights.shape,
            choice.splits,
            choice.stages,
            torch.cuda.current_stream().cuda_stream,
        )
        check(error, f"product {product.name} of {len(inputs)} rows")
