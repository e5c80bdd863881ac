"""How a row's codes are drawn from its logits.

All codebooks of a row use its parameters. Greedy rows take the likeliest code. The others divide
the logits by the temperature, take the softmax in float32, keep the `top_k` likeliest codes and of
those, renormalised, the likeliest ones until their sum has crossed `top_p` (the code that crosses
it is kept), and draw by the Gumbel-max trick: argmax of log p + noise. The noise is a hash of the
row's seed, its draw, the codebook and the code, so what shares a step does not change its codes.

`draw_row` is the rule, written to be read; `draw_rows` is the same for a whole step, without
anything that a CUDA graph cannot hold: no value is read by the host, no shape depends on one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from pipelines.higgs.ports import INVALID_CODE
from pipelines.higgs.rows import RowBatch, Sampling

GREEDY_TEMPERATURE = 1e-5  # at or below it the softmax would overflow: the likeliest code is taken

_SEED_FACTOR = 0x9E3779B1
_DRAW_FACTOR = 0x85EBCA77
_CODE_FACTOR = 0xC2B2AE3D
_UINT32 = 0xFFFFFFFF

# The largest float32 below 1. The largest hash would round to 1 itself, whose noise is infinite.
_MAX_UNIFORM = 1.0 - 2.0**-24


def draw_row(
    logits: npt.NDArray[np.float32],
    sampling: Sampling,
    *,
    seed: int,
    draw: int,
    ramp: int,
    begin_code: int,
) -> tuple[int, ...]:
    """logits [codebooks, codebook_size] -> one code a codebook."""
    if not np.isfinite(logits).all():
        return (INVALID_CODE,) * len(logits)
    codes: list[int] = []
    for codebook, of_codebook in enumerate(logits):
        if codebook > ramp:
            codes.append(begin_code)
        elif sampling.temperature <= GREEDY_TEMPERATURE or sampling.top_k == 1:
            codes.append(int(np.argmax(of_codebook)))
        else:
            position = draw * len(logits) + codebook
            codes.append(_sample(of_codebook, sampling, seed, position))
    return tuple(codes)


def _sample(logits: npt.NDArray[np.float32], sampling: Sampling, seed: int, position: int) -> int:
    scaled = logits / np.float32(sampling.temperature)
    weights = np.exp(scaled - scaled.max(), dtype=np.float32)
    likeliest = np.argsort(-weights, kind="stable")
    if sampling.top_k >= 1:
        likeliest = likeliest[: sampling.top_k]
    probabilities = weights[likeliest] / weights[likeliest].sum()
    best, best_score, before = -1, -np.inf, np.float32(0.0)
    for code, probability in zip(likeliest, probabilities, strict=True):
        if best >= 0 and before >= sampling.top_p:
            break
        before += probability
        score = np.log(probability) + noise(seed, position, int(code)) if probability else -np.inf
        if best < 0 or score > best_score:
            best, best_score = int(code), score
    return best


def noise(seed: int, position: int, code: int) -> float:
    """Gumbel noise, mixed by MurmurHash3's finaliser. position: draw * codebooks + codebook."""
    x = (seed * _SEED_FACTOR + position * _DRAW_FACTOR + code * _CODE_FACTOR) & _UINT32
    x ^= x >> 16
    x = (x * 0x85EBCA6B) & _UINT32
    x ^= x >> 13
    x = (x * 0xC2B2AE35) & _UINT32
    x ^= x >> 16
    uniform = min((np.float32(x >> 8) + np.float32(0.5)) * np.float32(2.0**-24), _MAX_UNIFORM)
    return float(-np.log(-np.log(np.float32(uniform))))


@dataclass(frozen=True, slots=True)
class DrawParameters:
    """What the rows of a step are drawn with, each [R], on the device of the logits.

    ramps, seeds, draws, top_k: int64; temperatures, top_p: float32. See `rows.Row`.
    """

    ramps: Tensor
    seeds: Tensor
    draws: Tensor
    temperatures: Tensor
    top_p: Tensor
    top_k: Tensor

    @classmethod
    def of(cls, rows: RowBatch, device: torch.device | str) -> DrawParameters:
        def whole(values: npt.NDArray[np.int32]) -> Tensor:
            return torch.from_numpy(values.astype(np.int64)).to(device)

        return cls(
            ramps=whole(rows.ramps),
            seeds=whole(rows.seeds),
            draws=whole(rows.draws),
            temperatures=torch.from_numpy(rows.temperatures.copy()).to(device),
            top_p=torch.from_numpy(rows.top_p.copy()).to(device),
            top_k=whole(rows.top_k),
        )


def draw_rows(logits: Tensor, parameters: DrawParameters, begin_code: int) -> Tensor:
    """logits float32 [R, codebooks, codebook_size] -> int32 [R, codebooks]."""
    _, codebooks, codebook_size = logits.shape
    is_greedy = (parameters.temperatures <= GREEDY_TEMPERATURE) | (parameters.top_k == 1)
    temperatures = parameters.temperatures.masked_fill(is_greedy, 1.0)
    weights = torch.softmax(logits / temperatures.view(-1, 1, 1), dim=-1)
    weights, likeliest = weights.sort(dim=-1, descending=True, stable=True)

    rank = torch.arange(codebook_size, device=logits.device)
    top_k = parameters.top_k.masked_fill(parameters.top_k < 1, codebook_size).view(-1, 1, 1)
    weights = weights.masked_fill(rank >= top_k, 0.0)
    probabilities = weights / weights.sum(dim=-1, keepdim=True)
    before = functional.pad(probabilities.cumsum(dim=-1)[..., :-1], (1, 0))
    is_kept = (before < parameters.top_p.view(-1, 1, 1)) & (probabilities > 0.0)
    is_kept = is_kept | (rank == 0)

    codebook = torch.arange(codebooks, device=logits.device)
    positions = parameters.draws.view(-1, 1) * codebooks + codebook
    score = probabilities.log() + _noise(parameters.seeds, positions, likeliest)
    winner = score.masked_fill(~is_kept, -torch.inf).argmax(dim=-1, keepdim=True)
    sampled = likeliest.gather(-1, winner).squeeze(-1)

    codes = logits.argmax(dim=-1).where(is_greedy.view(-1, 1), sampled)
    codes = codes.masked_fill(codebook > parameters.ramps.view(-1, 1), begin_code)
    is_finite = logits.isfinite().flatten(1).all(dim=1, keepdim=True)
    return codes.masked_fill(~is_finite, INVALID_CODE).int()


def _noise(seeds: Tensor, positions: Tensor, codes: Tensor) -> Tensor:
    """`noise` of seeds [R], positions [R, K], codes [R, K, V]; int64 holds the unsigned 32 bits."""
    x = seeds.view(-1, 1, 1) * _SEED_FACTOR + positions.unsqueeze(-1) * _DRAW_FACTOR
    x = (x + codes * _CODE_FACTOR) & _UINT32
    x = x ^ (x >> 16)
    x = (x * 0x85EBCA6B) & _UINT32
    x = x ^ (x >> 13)
    x = (x * 0xC2B2AE35) & _UINT32
    x = x ^ (x >> 16)
    uniform = (((x >> 8).float() + 0.5) * 2.0**-24).clamp(max=_MAX_UNIFORM)
    return -torch.log(-torch.log(uniform))
