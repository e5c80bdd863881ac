"""The streaming decoder as matrix products between fused kernels.

It computes what `codec_stream.StreamingDecoder` does in a fraction of the launches, and for few
frames a call costs what its launches cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from pipelines.higgs.codec.kernels import (
    product_weight,
    snake_,
    take_window,
    upsampling_weight,
)
from pipelines.higgs.codec.layers import TAPS, Block, DecoderParameters, Layout, Unit, Window
from pipelines.higgs.codec.model import CodecModel

UPSAMPLING_TAPS = 2  # the samples that an output of a transposed convolution is made of


class FusedDecoder:
    """See StreamingDecoder. The model lies on a CUDA device."""

    def __init__(self, model: CodecModel, slots: int) -> None:
        self.layout = Layout.of(model.config)
        self._parameters = DecoderParameters.of(model)
        device = self._parameters.code_features.device
        self.states = torch.zeros(slots + 1, self.layout.state_floats, device=device)
        first = torch.arange(model.config.codebooks, device=device)
        self._first_of_book = first * model.config.codebook_size
        self._opening = product_weight(self._parameters.opening.weight)
        self._blocks = [_BlockWeights.of(block) for block in self._parameters.blocks]
        self._closing = product_weight(self._parameters.closing.weight)

    @torch.inference_mode()
    def advance(
        self, codes: Tensor, slots: Tensor, starts: Tensor, counts: Tensor, ends: Tensor
    ) -> Tensor:
        """As StreamingDecoder.advance."""
        batch, frames, books = codes.shape
        layout, parameters = self.layout, self._parameters
        call = _Call(self.states, (slots, starts, counts, ends))
        index = (codes + self._first_of_book).view(-1, books)
        features = F.embedding_bag(index, parameters.code_features, mode="sum")
        x = _Sum(features.view(batch, frames, -1), parameters.feature_bias)
        columns, _ = call.window(layout.opening, x, None, TAPS)
        x = _Sum((columns @ self._opening).view(batch, frames, -1), parameters.opening.bias)
        blocks = zip(parameters.blocks, self._blocks, layout.blocks, strict=True)
        for block, weights, windows in blocks:
            columns, _ = call.window(windows.upsampling, x, block.alpha, UPSAMPLING_TAPS)
            upsampled = columns @ weights.upsampling
            channels = len(block.upsampling.bias)
            x = _Sum(upsampled.view(batch, -1, channels), block.upsampling.bias)
            for unit, products, window in zip(
                block.units, weights.units, windows.units, strict=True
            ):
                x = call.residual(window, x, unit, products)
        columns, _ = call.window(layout.closing, x, parameters.alpha, TAPS)
        sound = torch.addmm(parameters.closing.bias, columns, self._closing)
        self.states.index_copy_(0, slots, call.kept)
        return sound.view(batch, -1)


@dataclass(frozen=True, slots=True)
class _UnitWeights:
    dilated: Tensor
    pointwise: Tensor


@dataclass(frozen=True, slots=True)
class _BlockWeights:
    upsampling: Tensor
    units: tuple[_UnitWeights, ...]

    @classmethod
    def of(cls, block: Block) -> _BlockWeights:
        return cls(
            upsampling_weight(block.upsampling.weight, block.stride),
            tuple(
                _UnitWeights(
                    product_weight(unit.dilated.weight), product_weight(unit.pointwise.weight)
                )
                for unit in block.units
            ),
        )


@dataclass(frozen=True, slots=True)
class _Sum:
    """[B, n, channels] that the next kernel adds up: a product, its bias, a residual."""

    product: Tensor
    bias: Tensor
    skip: Tensor | None = None


class _Call:
    def __init__(self, states: Tensor, rows: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
        self._states, self._rows = states, rows
        self.kept = states.new_empty(len(rows[0]), states.shape[1])

    def window(
        self, window: Window, x: _Sum, alpha: Tensor | None, taps: int, keeps_raw: bool = False
    ) -> tuple[Tensor, Tensor]:
        return take_window(
            window, x.product, x.bias, x.skip, alpha, self._states, self._rows, self.kept,
            taps, keeps_raw,
        )  # fmt: skip

    def residual(self, window: Window, x: _Sum, unit: Unit, weights: _UnitWeights) -> _Sum:
        shape = x.product.shape
        columns, seen = self.window(window, x, unit.alpha, TAPS, keeps_raw=True)
        inner = snake_(columns @ weights.dilated, unit.dilated.bias, unit.second_alpha)
        middle = window.history // 2
        skip = seen[:, middle : middle + shape[1]]
        return _Sum((inner @ weights.pointwise).view(shape), unit.pointwise.bias, skip)
