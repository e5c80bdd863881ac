"""The rotary frequencies of Llama 3: those too slow for the trained length are slowed further."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """How Llama 3.2 stretches its positions.

    Waves longer than trained_positions / low are slowed by `factor`, those shorter than
    trained_positions / high are kept, and those between are blended. (Only the products matter:
    8192, 1, 4 and 1024, 0.125, 0.5 are the same rule, and both are in use.)
    """

    factor: float = 32.0
    low: float = 1.0
    high: float = 4.0
    trained_positions: int = 8192


def inverse_frequencies(head_dim: int, theta: float, scaling: RopeScaling | None) -> Tensor:
    """float32 [head_dim / 2]: radians a position turns each pair of dimensions by."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim
    plain = 1.0 / (theta**exponents)
    if scaling is None:
        return plain
    turns = scaling.trained_positions * plain / (2 * math.pi)  # within the trained length
    keep = ((turns - scaling.low) / (scaling.high - scaling.low)).clamp(0.0, 1.0)
    return keep * plain + (1.0 - keep) * plain / scaling.factor
