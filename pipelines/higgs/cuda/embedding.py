"""The rows' embeddings: a text token's, or the sum of those of eight codes.

The codes that a slot drew last are known on the device only, so composing the embeddings is part of
the graph, and a step needs nothing of the one before it from the host.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from pipelines.higgs.cuda import packing

_SLOT = tl.constexpr(packing.SLOT)
_TOKEN = tl.constexpr(packing.TOKEN)
_CODES = tl.constexpr(packing.CODES)

_COLUMNS = 512  # a block's; 2560 is five of them


@triton.jit
def _embed(
    rows,
    last_drawn,
    text_table,
    audio_table,
    hidden,
    HIDDEN: tl.constexpr,
    WIDTH: tl.constexpr,
    CODEBOOKS: tl.constexpr,
    CODEBOOK_SIZE: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    number = tl.program_id(0)
    row = rows + number * WIDTH
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    is_real = column < HIDDEN
    token = tl.load(row + _TOKEN)
    if token >= 0:
        total = tl.load(text_table + token.to(tl.int64) * HIDDEN + column, mask=is_real).to(
            tl.float32
        )
    else:
        slot = tl.load(row + _SLOT)
        total = tl.zeros((COLUMNS,), tl.float32)
        for codebook in tl.static_range(CODEBOOKS):
            given = tl.load(row + _CODES + codebook)
            drawn = tl.load(last_drawn + slot * CODEBOOKS + codebook)
            # Invalid codes are below 0 too: the step must run all the same.
            code = tl.maximum(tl.where(given < 0, drawn, given), 0)
            place = (codebook * CODEBOOK_SIZE + code) * HIDDEN + column
            total += tl.load(audio_table + place, mask=is_real).to(tl.float32)
    tl.store(hidden + number * HIDDEN + column, total.to(tl.bfloat16), mask=is_real)


def embed(
    rows: Tensor,
    last_drawn: Tensor,
    text_table: Tensor,
    audio_table: Tensor,
    hidden: Tensor,
    codebook_size: int,
) -> None:
    """Packed rows -> `hidden` bfloat16 [R, H]. last_drawn: int32 [slots, codebooks]."""
    count, hidden_size = hidden.shape
    _embed[(count, triton.cdiv(hidden_size, _COLUMNS))](
        rows,
        last_drawn,
        text_table,
        audio_table,
        hidden,
        HIDDEN=hidden_size,
        WIDTH=rows.shape[1],
        CODEBOOKS=last_drawn.shape[1],
        CODEBOOK_SIZE=codebook_size,
        COLUMNS=_COLUMNS,
        num_warps=4,
    )
