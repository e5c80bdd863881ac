"""The acoustic decoder taken apart for streaming: its windows, its lag and its weights.

Every convolution of the decoder looks both ways, so each layer's output lags behind its input.
Streaming runs each convolution without padding over a window, the samples that it still needs from
before and the new ones, and gets as many samples out as came in, `lag_samples` older.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pipelines.higgs.codec.config import CodecConfig
from pipelines.higgs.codec.model import CodecModel

UNIT_DILATIONS = (1, 3, 9)  # of the three residual units of a block
TAPS = 7  # of every convolution that is neither transposed nor pointwise


@dataclass(frozen=True, slots=True)
class Window:
    """What one convolution sees: `history` samples from before and `rate` new ones a frame.

    rate: samples a frame at this depth of the decoder.
    lag: how many samples the newest one is older than the newest frame.
    offset: where [channels, history] lies in a slot's row of state.
    """

    channels: int
    history: int
    rate: int
    lag: int
    offset: int

    @property
    def floats(self) -> int:
        return self.channels * self.history


@dataclass(frozen=True, slots=True)
class BlockWindows:
    upsampling: Window
    units: tuple[Window, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """All windows in the order of the computation, and what they add up to."""

    opening: Window
    blocks: tuple[BlockWindows, ...]
    closing: Window
    lag_samples: int
    state_floats: int

    @classmethod
    def of(cls, config: CodecConfig) -> Layout:
        depth = _Depth()
        opening = depth.window(config.acoustic_size, history=TAPS - 1)
        depth.lag += TAPS // 2
        blocks: list[BlockWindows] = []
        for level, stride in enumerate(config.ratios):
            upsampling = depth.window(config.decoder_channels(level), history=1)
            depth.rate *= stride
            depth.lag = depth.lag * stride + -(-stride // 2)
            units: list[Window] = []
            for dilation in UNIT_DILATIONS:
                channels = config.decoder_channels(level + 1)
                units.append(depth.window(channels, history=(TAPS - 1) * dilation))
                depth.lag += TAPS // 2 * dilation
            blocks.append(BlockWindows(upsampling, tuple(units)))
        closing = depth.window(config.decoder_channels(len(config.ratios)), history=TAPS - 1)
        depth.lag += TAPS // 2
        return cls(opening, tuple(blocks), closing, depth.lag, depth.offset)


@dataclass(slots=True)
class _Depth:
    """How far down the decoder the layout has come."""

    rate: int = 1
    lag: int = 0
    offset: int = 0

    def window(self, channels: int, history: int) -> Window:
        window = Window(channels, history, self.rate, self.lag, self.offset)
        self.offset += window.floats
        return window


@dataclass(frozen=True, slots=True)
class Convolution:
    """weight: [out, in, taps]; of a transposed one [in, out, 2 * stride]. bias: [out]."""

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True, slots=True)
class Unit:
    """A residual unit: snake, dilated convolution, snake, pointwise convolution."""

    alpha: Tensor  # [channels]
    dilated: Convolution
    dilation: int
    second_alpha: Tensor
    pointwise: Convolution


@dataclass(frozen=True, slots=True)
class Block:
    alpha: Tensor
    upsampling: Convolution
    stride: int
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class DecoderParameters:
    """From codes to sound.

    code_features: [codebooks * codebook_size, acoustic_size]; the features of a frame are the sum
        of its codes' rows and `feature_bias`. Quantiser and fc2 are linear, so this is all of both.
    """

    code_features: Tensor
    feature_bias: Tensor
    opening: Convolution
    blocks: tuple[Block, ...]
    alpha: Tensor
    closing: Convolution

    @classmethod
    def of(cls, model: CodecModel) -> DecoderParameters:
        decoder: Any = model.acoustic_decoder
        features, bias = _code_features(model)
        return cls(
            code_features=features,
            feature_bias=bias,
            opening=_convolution(decoder.conv1),
            blocks=tuple(
                Block(
                    alpha=_alpha(block.snake1),
                    upsampling=_convolution(block.conv_t1),
                    stride=block.conv_t1.stride[0],
                    units=tuple(_unit(getattr(block, f"res_unit{n}")) for n in (1, 2, 3)),
                )
                for block in decoder.block
            ),
            alpha=_alpha(decoder.snake1),
            closing=_convolution(decoder.conv2),
        )


def _code_features(model: CodecModel) -> tuple[Tensor, Tensor]:
    """Each code's share of the decoder's input, worked out in double precision."""
    project = model.fc2.weight.double()
    tables: list[Tensor] = []
    bias = model.fc2.bias.double()
    for quantizer in model.quantizer.each():
        out = project @ quantizer.project_out.weight.double()
        tables.append(quantizer.codebook.embed.double() @ out.T)
        bias = bias + project @ quantizer.project_out.bias.double()
    return torch.cat(tables).float().contiguous(), bias.float()


def _unit(unit: Any) -> Unit:
    return Unit(
        alpha=_alpha(unit.snake1),
        dilated=_convolution(unit.conv1),
        dilation=unit.conv1.dilation[0],
        second_alpha=_alpha(unit.snake2),
        pointwise=_convolution(unit.conv2),
    )


def _convolution(module: Any) -> Convolution:
    return Convolution(module.weight.detach().contiguous(), module.bias.detach().contiguous())


def _alpha(snake: Any) -> Tensor:
    return snake.alpha.detach().reshape(-1).contiguous()
