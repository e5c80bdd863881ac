"""Attention of single rows over the static cache: split over the keys, then combined.

A row's keys are read once for all queries that share them. The keys are split so that a step of
few rows occupies the whole GPU all the same.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from pipelines.higgs.cuda import packing

_SLOT = tl.constexpr(packing.SLOT)
_POSITION = tl.constexpr(packing.POSITION)

_KEYS_AT_ONCE = 64
_QUERY_ROWS = 16  # the least that a matrix instruction takes
_WANTED_BLOCKS = 512  # about four to a multiprocessor
_MAX_SPLITS = 16
_FAINT = tl.constexpr(-1e30)  # a score below all others whose differences are still finite


@triton.jit
def _attend(
    queries,
    keys,
    values,
    rows,
    parts,
    weights,
    positions,
    scale,
    KEY_HEADS: tl.constexpr,
    SHARING: tl.constexpr,
    DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
    QUERY_ROWS: tl.constexpr,
):
    number = tl.program_id(0)
    head = tl.program_id(1)
    split = tl.program_id(2)
    row = rows + number * WIDTH
    seen = tl.load(row + _POSITION) + 1
    slot = tl.load(row + _SLOT).to(tl.int64)
    share = tl.cdiv(tl.cdiv(seen, SPLITS), BLOCK) * BLOCK
    start = split * share
    end = tl.minimum(start + share, seen)
    query = tl.arange(0, QUERY_ROWS)
    column = tl.arange(0, DIM)
    is_query = query < SHARING
    of_head = (number * KEY_HEADS + head) * SHARING + query
    asked = tl.load(
        queries + of_head[:, None] * DIM + column[None, :], mask=is_query[:, None], other=0.0
    )
    greatest = tl.full((QUERY_ROWS,), _FAINT, tl.float32)
    total = tl.zeros((QUERY_ROWS,), tl.float32)
    result = tl.zeros((QUERY_ROWS, DIM), tl.float32)
    base = (slot * KEY_HEADS + head) * positions * DIM
    for first in range(start, end, BLOCK):
        place = first + tl.arange(0, BLOCK)
        is_seen = place < end
        key = tl.load(
            keys + base + place[None, :] * DIM + column[:, None], mask=is_seen[None, :], other=0.0
        )
        value = tl.load(
            values + base + place[:, None] * DIM + column[None, :],
            mask=is_seen[:, None],
            other=0.0,
        )
        score = tl.where(is_seen[None, :], tl.dot(asked, key) * scale, _FAINT)
        now = tl.maximum(greatest, tl.max(score, 1))
        fade = tl.exp2(greatest - now)
        chance = tl.exp2(score - now[:, None])
        total = total * fade + tl.sum(chance, 1)
        result = result * fade[:, None] + tl.dot(chance.to(tl.bfloat16), value)
        greatest = now
    result = result / tl.maximum(total, 1e-30)[:, None]
    part = of_head * SPLITS + split
    tl.store(parts + part[:, None] * DIM + column[None, :], result, mask=is_query[:, None])
    weight = tl.where(total > 0, greatest + tl.log2(tl.maximum(total, 1e-30)), _FAINT)
    tl.store(weights + part, weight, mask=is_query)


@triton.jit
def _combine(parts, weights, attended, DIM: tl.constexpr, SPLITS: tl.constexpr):
    head = tl.program_id(0)
    split = tl.arange(0, SPLITS)
    column = tl.arange(0, DIM)
    weight = tl.load(weights + head * SPLITS + split)
    weight = tl.exp2(weight - tl.max(weight, 0))
    weight = weight / tl.sum(weight, 0)
    part = tl.load(parts + (head * SPLITS + split[:, None]) * DIM + column[None, :])
    result = tl.sum(part * weight[:, None], 0)
    tl.store(attended + head * DIM + column, result.to(tl.bfloat16))


class Attention:
    """Attention with the buffers that its splits need, for steps of at most `row_limit` rows."""

    def __init__(
        self, *, row_limit: int, query_heads: int, head_dim: int, device: torch.device
    ) -> None:
        most = max(rows * _splits(rows, 1) for rows in range(1, row_limit + 1))
        shape = (most * query_heads, head_dim)
        self._parts = torch.empty(shape, dtype=torch.float32, device=device)
        self._weights = torch.empty(shape[0], dtype=torch.float32, device=device)

    def attend(
        self, queries: Tensor, cache: tuple[Tensor, Tensor], rows: Tensor, attended: Tensor
    ) -> None:
        """queries, attended: bfloat16 [R, query_heads * D]; cache: keys and values of a layer,
        [slots, kv_heads, positions, D]. A row sees the positions of its slot up to its own."""
        keys, values = cache
        _, key_heads, positions, head_dim = keys.shape
        count = len(queries)
        query_heads = queries.shape[1] // head_dim
        splits = _splits(count, key_heads)
        _attend[(count, key_heads, splits)](
            queries,
            keys,
            values,
            rows,
            self._parts,
            self._weights,
            positions,
            math.log2(math.e) / math.sqrt(head_dim),
            KEY_HEADS=key_heads,
            SHARING=query_heads // key_heads,
            DIM=head_dim,
            WIDTH=rows.shape[1],
            BLOCK=_KEYS_AT_ONCE,
            SPLITS=splits,
            QUERY_ROWS=_QUERY_ROWS,
            num_warps=4,
            num_stages=3,
        )
        _combine[(count * query_heads,)](
            self._parts, self._weights, attended, DIM=head_dim, SPLITS=splits, num_warps=1
        )


def _splits(rows: int, key_heads: int) -> int:
    """A power of two of at most _MAX_SPLITS, for about _WANTED_BLOCKS blocks."""
    wanted = max(1, _WANTED_BLOCKS // (rows * key_heads))
    return min(_MAX_SPLITS, 1 << (wanted.bit_length() - 1))
