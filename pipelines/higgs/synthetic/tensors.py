"""The recipe for random weights, tensor by tensor.

The weights are made so that the codes behave as speech's do: the layers' part of a hidden state
outweighs the embedding's (or the tied head would repeat the last row for ever), and the logits are
far enough apart for top-p to leave out the codes that are not meant to be drawn.
"""

from __future__ import annotations

import math
import zlib
from statistics import NormalDist

import torch
from torch import Tensor

from pipelines.higgs.checkpoint import tensors
from pipelines.higgs.config import HiggsConfig

_EMBEDDING_DEVIATION = 0.02
_LOGIT_DEVIATION = 5.0  # the likeliest codes then hold nearly all of the probability
_ATTENTION_GAIN = 0.05  # of a layer's output: below the embedding's, so that rows stay distinct
_MLP_GAIN = 1.0


def random_tensor(
    config: HiggsConfig,
    name: str,
    shape: tuple[int, ...],
    device: torch.device | str,
    seed: int,
    typical_rows: int | None,
) -> Tensor:
    """float32. A function of the name and the seed, on each kind of device.

    typical_rows: see `synthetic.random_parameters`.
    """
    if len(shape) == 1:
        is_final = name == tensors.FINAL_NORM
        return torch.full(shape, _final_gain(config) if is_final else 1.0, device=device)
    generator = torch.Generator(device=device).manual_seed(seed ^ zlib.crc32(name.encode()))
    values = torch.randn(shape, generator=generator, device=device)
    values *= _deviation(config, name)
    if name in (tensors.AUDIO_EMBEDDING, tensors.AUDIO_HEAD):
        _shape_specials(config, values, typical_rows)
    return values


def _final_gain(config: HiggsConfig) -> float:
    """What makes the logits' deviation the one that is meant."""
    return _LOGIT_DEVIATION / (_EMBEDDING_DEVIATION * math.sqrt(config.backbone.hidden_size))


def _deviation(config: HiggsConfig, name: str) -> float:
    body = config.backbone
    if "embedding" in name or name == tensors.AUDIO_HEAD:
        return _EMBEDDING_DEVIATION
    if "o_proj" in name:
        return _ATTENTION_GAIN / math.sqrt(body.query_heads * body.head_dim)
    if "down_proj" in name:
        return _MLP_GAIN / math.sqrt(body.intermediate_size)
    return 1.0 / math.sqrt(body.hidden_size)


def _shape_specials(config: HiggsConfig, values: Tensor, typical_rows: int | None) -> None:
    """BOC and EOC get logits of 0, amid the others; EOC of codebook 0 one that wins now and then.

    A logit of deviation s (in those of the others) exceeds the highest of the others, m, about once
    in 1 / P(z > m / s) rows.
    """
    audio = config.audio
    by_codebook = values.view(audio.codebooks, audio.codebook_size, -1)
    end = by_codebook[0, audio.end_code].clone()
    by_codebook[:, audio.begin_code :] = 0.0
    if typical_rows is not None:
        normal = NormalDist()
        highest = normal.inv_cdf(1.0 - 1.0 / audio.begin_code)
        by_codebook[0, audio.end_code] = end * highest / normal.inv_cdf(1.0 - 1.0 / typical_rows)
