"""Triton kernels around the matrix products of the codec's streaming decoder.

Everything is channels-last. One kernel makes a window: joins history and new samples, sets to zero
what lies outside of the sound, keeps the history for the next call, applies snake, and lays the
taps of each output side by side, so that a convolution is one matrix product.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from pipelines.higgs.codec.layers import Window

ELEMENTS = 512  # a program's share of a window; fills the card from a few frames on

# The kernels are compiled once for each width; a copy for each value of these would take minutes.
VARYING = [
    "new_floats",
    "skip_stride",
    "state_stride",
    "offset",
    "history",
    "rate",
    "lag",
    "dilation",
]


@triton.jit(do_not_specialize=VARYING)
def _window_kernel(
    new, bias, skip, alpha, states, slots, starts, counts, ends, raw, columns, kept,
    new_floats, skip_stride, state_stride, offset, history, rate, lag, dilation,
    CHANNELS: tl.constexpr, TAPS: tl.constexpr, HAS_SKIP: tl.constexpr, HAS_SNAKE: tl.constexpr,
    KEEPS_RAW: tl.constexpr, ELEMENTS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1)
    index = tl.program_id(0) * ELEMENTS + tl.arange(0, ELEMENTS)
    history_floats = history * CHANNELS
    joined_floats = history_floats + new_floats
    time = index // CHANNELS
    channel = index % CHANNELS
    is_old = index < history_floats
    is_new = (index >= history_floats) & (index < joined_floats)
    fresh = index - history_floats

    slot = tl.load(slots + row).to(tl.int32)
    old = tl.load(states + slot * state_stride + offset + index, mask=is_old, other=0.0)
    x = tl.load(new + row * new_floats + fresh, mask=is_new, other=0.0)
    x += tl.load(bias + channel)
    if HAS_SKIP:
        x += tl.load(skip + row * skip_stride + fresh, mask=is_new, other=0.0)
    x = tl.where(is_old, old, x)

    start = tl.load(starts + row).to(tl.int32)
    end = tl.load(ends + row).to(tl.int32)
    position = start * rate - lag - history + time
    x = tl.where((position >= 0) & (position < end * rate), x, 0.0)

    count = tl.load(counts + row).to(tl.int32)
    into = index - count * rate * CHANNELS
    is_kept = (into >= 0) & (into < history_floats) & (index < joined_floats)
    tl.store(kept + row * state_stride + offset + into, x, mask=is_kept)
    if KEEPS_RAW:
        tl.store(raw + row * joined_floats + index, x, mask=index < joined_floats)

    if HAS_SNAKE:
        slope = tl.load(alpha + channel)
        wave = tl.sin(slope * x)
        x += wave * wave / (slope + 1e-9)
    for tap in tl.static_range(TAPS):
        seen_by = index - tap * dilation * CHANNELS  # the output that has x at this tap
        is_seen = (seen_by >= 0) & (seen_by < new_floats)
        at = row * new_floats * TAPS + (seen_by // CHANNELS) * (TAPS * CHANNELS)
        tl.store(columns + at + tap * CHANNELS + channel, x, mask=is_seen)


@triton.jit(do_not_specialize=["floats"])
def _snake_kernel(x, bias, alpha, floats, CHANNELS: tl.constexpr, ELEMENTS: tl.constexpr):
    index = tl.program_id(0) * ELEMENTS + tl.arange(0, ELEMENTS)
    is_there = index < floats
    channel = index % CHANNELS
    value = tl.load(x + index, mask=is_there, other=0.0) + tl.load(bias + channel)
    slope = tl.load(alpha + channel)
    wave = tl.sin(slope * value)
    tl.store(x + index, value + wave * wave / (slope + 1e-9), mask=is_there)


def take_window(
    window: Window,
    new: Tensor,
    bias: Tensor,
    skip: Tensor | None,
    alpha: Tensor | None,
    states: Tensor,
    rows: tuple[Tensor, Tensor, Tensor, Tensor],
    kept: Tensor,
    taps: int,
    keeps_raw: bool,
) -> tuple[Tensor, Tensor]:
    """The window's taps side by side, and the window itself if it is kept for a residual.

    new: [B, n, channels], to which bias and skip (the same shape, rows of samples contiguous) are
    added; states: [slots + 1, state]; rows: slots, starts, counts and ends as in StreamingDecoder;
    kept: [B, state], the states to come. Returns [B * n, taps * channels] and
    [B, history + n, channels].
    """
    batch, length, channels = new.shape
    joined = window.history + length
    raw = new.new_empty(batch, joined if keeps_raw else 0, channels)
    columns = new.new_empty(batch * length, taps * channels)
    _window_kernel[(triton.cdiv(joined * channels, ELEMENTS), batch)](
        new,
        bias,
        new if skip is None else skip,
        bias if alpha is None else alpha,
        states,
        *rows,
        raw,
        columns,
        kept,
        length * channels,
        0 if skip is None else skip.stride(0),
        states.shape[1],
        window.offset,
        window.history,
        window.rate,
        window.lag,
        window.history // (taps - 1),
        CHANNELS=channels,
        TAPS=taps,
        HAS_SKIP=skip is not None,
        HAS_SNAKE=alpha is not None,
        KEEPS_RAW=keeps_raw,
        ELEMENTS=ELEMENTS,
    )
    return columns, raw


def snake_(x: Tensor, bias: Tensor, alpha: Tensor) -> Tensor:
    """snake(x + bias), in place, over [n, channels]."""
    floats = x.numel()
    grid = (triton.cdiv(floats, ELEMENTS),)
    _snake_kernel[grid](x, bias, alpha, floats, CHANNELS=x.shape[1], ELEMENTS=ELEMENTS)
    return x


def product_weight(weight: Tensor) -> Tensor:
    """A convolution's [out, in, taps] as the matrix [taps * in, out]."""
    return weight.permute(2, 1, 0).reshape(-1, weight.shape[0]).contiguous()


def upsampling_weight(weight: Tensor, stride: int) -> Tensor:
    """A transposed convolution's [in, out, 2 * stride] as the matrix [2 * in, stride * out].

    A sample reaches its own `stride` outputs with the first half of the taps, and the next
    sample's with the second.
    """
    own, late = weight[:, :, :stride], weight[:, :, stride:]
    halves = [half.permute(0, 2, 1).flatten(1) for half in (late, own)]
    return torch.cat(halves).contiguous()
