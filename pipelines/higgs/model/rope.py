"""Rotary position embedding: the table of angles and its application to heads."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pipelines.higgs.config import BackboneConfig


@dataclass(frozen=True, slots=True)
class RopeTable:
    """cos, sin: float32 [positions, head_dim / 2]."""

    cos: Tensor
    sin: Tensor

    def rotate(self, heads: Tensor, positions: Tensor) -> Tensor:
        """heads [R, heads, head_dim] at positions int64 [R] -> the same shape and dtype.

        Dimension i turns together with dimension i + head_dim / 2. The arithmetic is in float32.
        """
        cos, sin = self.cos[positions].unsqueeze(1), self.sin[positions].unsqueeze(1)
        first, second = heads.float().chunk(2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        return turned.to(heads.dtype)


def inverse_frequencies(config: BackboneConfig) -> Tensor:
    """float32 [head_dim / 2]: by how many radians a position turns each pair of dimensions."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    return 1.0 / (config.rope_theta**exponents)


def rope_table(
    frequencies: Tensor, positions: int, device: torch.device | str, *, is_rounded: bool
) -> RopeTable:
    """The table of `positions` angles.

    is_rounded: its values are those that bfloat16 can hold, kept in float32. The published weights
    were trained with such a table, so a bfloat16 model sounds best with one. The angles are
    computed on the CPU: every device gets the same bits.
    """
    angles = torch.arange(positions, dtype=torch.float32).unsqueeze(1) * frequencies
    return RopeTable(
        _kept(angles.cos(), is_rounded).to(device), _kept(angles.sin(), is_rounded).to(device)
    )


def _kept(values: Tensor, is_rounded: bool) -> Tensor:
    return values.to(torch.bfloat16).to(torch.float32) if is_rounded else values
