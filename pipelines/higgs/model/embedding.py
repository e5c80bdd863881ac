"""The fused embedding of a row's codes, and the head that gives the logits of the next row's.

One table [codebooks * codebook_size, H] serves all codebooks: code c of codebook k is its row
c + k * codebook_size. The head is that same table where it is tied.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from pipelines.higgs.config import AudioConfig


def embed_codes(codes: Tensor, table: Tensor, config: AudioConfig) -> Tensor:
    """codes int [R, codebooks] -> [R, H]: the plain sum of the codes' rows, rounded once.

    A code below 0 counts as 0: after a row of codes that are not valid a step still runs.
    """
    first_rows = torch.arange(config.codebooks, device=codes.device) * config.codebook_size
    return table[codes.long().clamp(min=0) + first_rows].sum(dim=1)


def code_logits(hidden: Tensor, head: Tensor, config: AudioConfig) -> Tensor:
    """hidden [R, H], after the final norm -> float32 [R, codebooks, codebook_size]."""
    logits = functional.linear(hidden, head).float()
    return logits.view(-1, config.codebooks, config.codebook_size)
