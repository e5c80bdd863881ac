"""Drawing codes from logits: `model.sampler` as one kernel, a block for each code drawn.

Sorting 1026 logits would cost more than all the rest. The order that a stable sort gives (larger
logits first, lower codes first among equals) is that of one integer a code, unique and of 27 bits,
so top-k is the threshold that k of them reach, and top-p the threshold above which lies less
than p: both are found by bisection, a count or a sum over the codes at each of the bits.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from pipelines.higgs.config import AudioConfig
from pipelines.higgs.cuda import packing
from pipelines.higgs.model.sampler import GREEDY_TEMPERATURE
from pipelines.higgs.ports import INVALID_CODE

_SLOT = tl.constexpr(packing.SLOT)
_RAMP = tl.constexpr(packing.RAMP)
_SEED = tl.constexpr(packing.SEED)
_DRAW = tl.constexpr(packing.DRAW)
_TEMPERATURE = tl.constexpr(packing.TEMPERATURE)
_TOP_P = tl.constexpr(packing.TOP_P)
_TOP_K = tl.constexpr(packing.TOP_K)
_KEEPS = tl.constexpr(packing.KEEPS)
_INVALID = tl.constexpr(INVALID_CODE)
_GREEDY_TEMPERATURE = tl.constexpr(GREEDY_TEMPERATURE)

_MAX_CODES = 2048  # of a codebook: an order of 16 bits of logit and 11 of code fits an int32


@triton.jit
def _gumbel(seed, position, code):
    x = (
        seed.to(tl.uint32, bitcast=True) * 0x9E3779B1
        + position.to(tl.uint32, bitcast=True) * 0x85EBCA77
        + code.to(tl.uint32, bitcast=True) * 0xC2B2AE3D
    )
    x = x ^ (x >> 16)
    x = x * 0x85EBCA6B
    x = x ^ (x >> 13)
    x = x * 0xC2B2AE35
    x = x ^ (x >> 16)
    uniform = ((x >> 8).to(tl.float32) + 0.5) * 5.9604644775390625e-08
    return -tl.log(-tl.log(tl.minimum(uniform, 0.99999994)))


@triton.jit
def _draw(
    logits,
    rows,
    drawn,
    last_drawn,
    WIDTH: tl.constexpr,
    CODEBOOKS: tl.constexpr,
    SIZE: tl.constexpr,
    BEGIN: tl.constexpr,
    BLOCK: tl.constexpr,
    BITS: tl.constexpr,
):
    number = tl.program_id(0)
    codebook = tl.program_id(1)
    row = rows + number * WIDTH
    ramp = tl.load(row + _RAMP)
    if ramp >= 0:
        code = tl.arange(0, BLOCK)
        is_real = code < SIZE
        of_row = logits + number.to(tl.int64) * CODEBOOKS * SIZE
        faults = tl.zeros((BLOCK,), tl.int32)
        for other in tl.static_range(CODEBOOKS):
            seen = tl.load(of_row + other * SIZE + code, mask=is_real, other=0.0).to(tl.float32)
            faults = faults | tl.where(tl.abs(seen) < float("inf"), 0, 1)
        is_finite = tl.max(faults, 0) == 0

        logit = tl.load(of_row + codebook * SIZE + code, mask=is_real, other=0.0).to(tl.float32)
        logit = tl.where(logit == 0.0, 0.0, logit)  # the two zeros are equals
        bits = logit.to(tl.int32, bitcast=True)
        order = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits) >> 16
        order = tl.where(is_real, order * BLOCK + (BLOCK - 1 - code), -32769 * BLOCK)
        best = tl.max(order, 0)

        temperature = tl.load(row + _TEMPERATURE).to(tl.float32, bitcast=True)
        top_k = tl.load(row + _TOP_K)
        if (temperature <= _GREEDY_TEMPERATURE) | (top_k == 1):
            chosen = BLOCK - 1 - (best & (BLOCK - 1))
        else:
            wanted = tl.where((top_k < 1) | (top_k > SIZE), SIZE, top_k)
            low = tl.full((), -32768 * BLOCK, tl.int32)
            high = best
            for _ in range(BITS):
                middle = low + ((high - low + 1) >> 1)
                is_reached = tl.sum((order >= middle).to(tl.int32), 0) >= wanted
                low = tl.where(is_reached, middle, low)
                high = tl.where(is_reached, high, middle - 1)
            scaled = logit / temperature
            greatest = tl.max(tl.where(is_real, scaled, float("-inf")), 0)
            weight = tl.where(order >= low, tl.exp(scaled - greatest), 0.0)
            share = tl.load(row + _TOP_P).to(tl.float32, bitcast=True) * tl.sum(weight, 0)
            high = best
            for _ in range(BITS):
                middle = low + ((high - low) >> 1)
                is_enough = tl.sum(tl.where(order > middle, weight, 0.0), 0) < share
                high = tl.where(is_enough, middle, high)
                low = tl.where(is_enough, low, tl.minimum(middle + 1, high))
            position = tl.load(row + _DRAW) * CODEBOOKS + codebook
            noise = _gumbel(tl.load(row + _SEED), position, code)
            is_kept = (order >= high) & ((weight > 0.0) | (order == best))
            chosen = tl.argmax(tl.where(is_kept, scaled + noise, float("-inf")), 0)
        result = tl.where(codebook > ramp, BEGIN, chosen)
        result = tl.where(is_finite, result, _INVALID)
        tl.store(drawn + number * CODEBOOKS + codebook, result)
        if tl.load(row + _KEEPS) != 0:
            slot = tl.load(row + _SLOT)
            tl.store(last_drawn + slot * CODEBOOKS + codebook, result)


def draw(
    logits: Tensor, rows: Tensor, drawn: Tensor, last_drawn: Tensor, audio: AudioConfig
) -> None:
    """logits bfloat16 [R, codebooks * codebook_size], packed rows -> `drawn` int32 [R, codebooks].

    Rows that draw nothing leave theirs as it was.
    """
    block = triton.next_power_of_2(audio.codebook_size)
    if block > _MAX_CODES:
        raise ValueError(f"a codebook of {audio.codebook_size}; the kernel takes {_MAX_CODES}")
    _draw[(len(logits), audio.codebooks)](
        logits,
        rows,
        drawn,
        last_drawn,
        WIDTH=rows.shape[1],
        CODEBOOKS=audio.codebooks,
        SIZE=audio.codebook_size,
        BEGIN=audio.begin_code,
        BLOCK=block,
        BITS=16 + block.bit_length() - 1,
        num_warps=4,
    )
