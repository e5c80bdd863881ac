"""Exact streaming of the acoustic decoder: chunk by chunk the very samples of decoding at once.

Decoding at once pads every layer's input with zeros at both ends of the sound. Here each layer sets
to zero what lies before the sound's first sample or behind its last, by absolute positions; so a
start, a middle and an end are one computation of one shape, and a slot needs no clearing between
stretches. The end of a stretch is drawn out by feeding frames of anything behind it.

The inputs are few small tensors and no shape depends on their values, so that a call can be
recorded as a CUDA graph.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from pipelines.higgs.codec.layers import Convolution, DecoderParameters, Layout, Unit, Window
from pipelines.higgs.codec.model import CodecModel

# The end of a stretch whose end is not known yet: 23 hours; its samples still count in int32.
NEVER_FRAMES = 2**21


class StreamingDecoder:
    """The decoder with a row of state for each slot, and one more for rows that stand for none."""

    def __init__(self, model: CodecModel, slots: int) -> None:
        self.layout = Layout.of(model.config)
        self.parameters = DecoderParameters.of(model)
        device = self.parameters.code_features.device
        self.states = torch.zeros(slots + 1, self.layout.state_floats, device=device)
        first = torch.arange(model.config.codebooks, device=device)
        self._first_of_book = first * model.config.codebook_size

    @torch.inference_mode()
    def advance(
        self, codes: Tensor, slots: Tensor, starts: Tensor, counts: Tensor, ends: Tensor
    ) -> Tensor:
        """Feed up to F frames of each of B different slots; float32 [B, F * FRAME_SAMPLES].

        codes: int64 [B, F, codebooks]. The others int64 [B]: slots; starts: how many frames of the
        stretch were fed before; counts: how many of the F are fed, the rest being ignored; ends:
        how many frames the stretch has, or NEVER_FRAMES.
        Row b holds the samples from starts[b] * FRAME_SAMPLES - lag_samples on; those of the first
        counts[b] frames are good, where they lie within the stretch.
        """
        call = _Call(self.states[slots], starts, counts, ends)
        layout, parameters = self.layout, self.parameters
        features = F.embedding(codes + self._first_of_book, parameters.code_features).sum(dim=2)
        x = (features + parameters.feature_bias).transpose(1, 2)
        x = _convolve(call.window(layout.opening, x), parameters.opening)
        for block, windows in zip(parameters.blocks, layout.blocks, strict=True):
            seen = snake(call.window(windows.upsampling, x), block.alpha)
            # Padding by a stride drops the samples that only half of the taps have reached.
            weight, bias = block.upsampling.weight, block.upsampling.bias
            x = F.conv_transpose1d(seen, weight, bias, stride=block.stride, padding=block.stride)
            for unit, window in zip(block.units, windows.units, strict=True):
                x = _residual(call.window(window, x), unit, x.shape[2])
        seen = snake(call.window(layout.closing, x), parameters.alpha)
        sound = _convolve(seen, parameters.closing)
        self.states[slots] = call.state()
        return sound[:, 0]


class _Call:
    """One call's windows: each takes its history from the old state and leaves it for the new."""

    def __init__(self, old: Tensor, starts: Tensor, counts: Tensor, ends: Tensor) -> None:
        self._old = old
        self._starts, self._counts, self._ends = starts[:, None], counts[:, None], ends[:, None]
        self._kept: list[Tensor] = []

    def window(self, window: Window, new: Tensor) -> Tensor:
        """[B, channels, n] behind its history, zero outside of the sound."""
        rows = len(new)
        history = self._old[:, window.offset : window.offset + window.floats]
        joined = torch.cat([history.view(rows, window.channels, window.history), new], dim=2)
        first = self._starts * window.rate - window.lag - window.history
        position = first + torch.arange(joined.shape[2], device=new.device)
        is_sound = (position >= 0) & (position < self._ends * window.rate)
        joined = torch.where(is_sound[:, None], joined, 0.0)
        kept = self._counts * window.rate + torch.arange(window.history, device=new.device)
        kept = kept[:, None].expand(rows, window.channels, window.history)
        self._kept.append(joined.gather(2, kept).view(rows, window.floats))
        return joined

    def state(self) -> Tensor:
        return torch.cat(self._kept, dim=1)


def snake(x: Tensor, alpha: Tensor) -> Tensor:
    """x + sin(alpha x)^2 / alpha, over [B, channels, n]; zero stays zero."""
    alpha = alpha[:, None]
    return x + (alpha + 1e-9).reciprocal() * torch.sin(alpha * x).square()


def _residual(seen: Tensor, unit: Unit, new: int) -> Tensor:
    middle = (seen.shape[2] - new) // 2
    x = _convolve(snake(seen, unit.alpha), unit.dilated, unit.dilation)
    x = _convolve(snake(x, unit.second_alpha), unit.pointwise)
    return seen[:, :, middle : middle + new] + x


def _convolve(x: Tensor, convolution: Convolution, dilation: int = 1) -> Tensor:
    return F.conv1d(x, convolution.weight, convolution.bias, dilation=dilation)
