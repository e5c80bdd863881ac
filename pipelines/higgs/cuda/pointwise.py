"""The small operations between the matrix products, each one kernel: RMSNorm with the addition
before it, the heads' norm with RoPE and the writing of keys and values, and the gate.

They round where the plain torch model rounds, so that both give the same numbers but for the order
of sums.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from pipelines.higgs.cuda import packing

_SLOT = tl.constexpr(packing.SLOT)
_POSITION = tl.constexpr(packing.POSITION)


@triton.jit
def _add_norm(
    residual,
    addend,
    weight,
    normed,
    EPSILON: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
    ADDS: tl.constexpr,
):
    number = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    is_real = column < SIZE
    place = number * SIZE + column
    values = tl.load(residual + place, mask=is_real, other=0.0).to(tl.float32)
    if ADDS:
        values += tl.load(addend + place, mask=is_real, other=0.0).to(tl.float32)
        rounded = values.to(tl.bfloat16)
        tl.store(residual + place, rounded, mask=is_real)
        values = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, 0) / SIZE + EPSILON)
    factors = tl.load(weight + column, mask=is_real, other=0.0).to(tl.float32)
    result = (values * scale).to(tl.bfloat16).to(tl.float32) * factors
    tl.store(normed + place, result.to(tl.bfloat16), mask=is_real)


def add_norm(
    residual: Tensor, addend: Tensor | None, weight: Tensor, normed: Tensor, epsilon: float
) -> None:
    """residual += addend, in place; normed = RMSNorm(residual) * weight. All bfloat16 [R, H]."""
    count, size = residual.shape
    _add_norm[(count,)](
        residual,
        residual if addend is None else addend,
        weight,
        normed,
        EPSILON=epsilon,
        SIZE=size,
        BLOCK=triton.next_power_of_2(size),
        ADDS=addend is not None,
        num_warps=8,
    )


@triton.jit
def _place_heads(
    projected,
    rows,
    query_norm,
    key_norm,
    cos,
    sin,
    keys,
    values,
    queries,
    positions,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    HALF: tl.constexpr,
    WIDTH: tl.constexpr,
    EPSILON: tl.constexpr,
):
    number = tl.program_id(0)
    head = tl.program_id(1)
    row = rows + number * WIDTH
    position = tl.load(row + _POSITION)
    if position >= 0:
        column = tl.arange(0, HALF)
        source = projected + (number * (QUERIES + 2 * KEYS) + head) * 2 * HALF
        first = tl.load(source + column).to(tl.float32)
        second = tl.load(source + HALF + column).to(tl.float32)
        if head < QUERIES + KEYS:
            norm = query_norm if head < QUERIES else key_norm
            squares = tl.sum(first * first, 0) + tl.sum(second * second, 0)
            scale = tl.rsqrt(squares / (2 * HALF) + EPSILON)
            first = (first * scale).to(tl.bfloat16) * tl.load(norm + column)
            second = (second * scale).to(tl.bfloat16) * tl.load(norm + HALF + column)
            first, second = first.to(tl.float32), second.to(tl.float32)
            turn_cos = tl.load(cos + position * HALF + column)
            turn_sin = tl.load(sin + position * HALF + column)
            turned = first * turn_cos - second * turn_sin
            second = second * turn_cos + first * turn_sin
            first = turned
        slot = tl.load(row + _SLOT).to(tl.int64)
        if head < QUERIES:
            target = queries + (number * QUERIES + head) * 2 * HALF
        elif head < QUERIES + KEYS:
            place = (slot * KEYS + head - QUERIES) * positions + position
            target = keys + place * 2 * HALF
        else:
            place = (slot * KEYS + head - QUERIES - KEYS) * positions + position
            target = values + place * 2 * HALF
        tl.store(target + column, first.to(tl.bfloat16))
        tl.store(target + HALF + column, second.to(tl.bfloat16))


def place_heads(
    projected: Tensor,
    rows: Tensor,
    norms: tuple[Tensor, Tensor],
    rope: tuple[Tensor, Tensor],
    cache: tuple[Tensor, Tensor],
    queries: Tensor,
    epsilon: float,
) -> None:
    """Norm and turn the heads of projected [R, (query_heads + 2 * kv_heads) * D].

    norms: of queries and keys, [D]; rope: cos, sin float32 [positions, D / 2]; cache: keys, values
    of one layer, [slots, kv_heads, positions, D], written at the rows' places; queries: written,
    [R, query_heads * D].
    """
    keys, values = cache
    _, key_heads, positions, head_dim = keys.shape
    query_heads = queries.shape[1] // head_dim
    _place_heads[(len(projected), query_heads + 2 * key_heads)](
        projected,
        rows,
        *norms,
        *rope,
        keys,
        values,
        queries,
        positions,
        QUERIES=query_heads,
        KEYS=key_heads,
        HALF=head_dim // 2,
        WIDTH=rows.shape[1],
        EPSILON=epsilon,
        num_warps=1,
    )


@triton.jit
def _gate(gate_up, gated, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    number = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_real = column < SIZE
    gate = tl.load(gate_up + number * 2 * SIZE + column, mask=is_real).to(tl.float32)
    up = tl.load(gate_up + number * 2 * SIZE + SIZE + column, mask=is_real).to(tl.float32)
    result = gate * tl.sigmoid(gate) * up
    tl.store(gated + number * SIZE + column, result.to(tl.bfloat16), mask=is_real)


def gate(gate_up: Tensor, gated: Tensor) -> None:
    """gated [R, I] = SiLU(gate) * up of gate_up [R, 2 * I]."""
    count, size = gated.shape
    block = 1024
    _gate[(count, triton.cdiv(size, block))](gate_up, gated, SIZE=size, BLOCK=block, num_warps=4)
