"""24 kHz to the 16 kHz at which the codec's semantic branch hears.

A windowed sinc, as torchaudio's `resample` defines it with its default values (which the codec was
trained with): https://pytorch.org/audio/stable/generated/torchaudio.functional.resample.html
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from pipelines.higgs.codec.config import SEMANTIC_RATE_HZ
from pipelines.higgs.config import CODEC_RATE_HZ

ZERO_CROSSINGS = 6  # of the sinc, on each side
ROLLOFF = 0.99  # the cut-off, as a share of the lower rate's half

_COMMON_HZ = math.gcd(CODEC_RATE_HZ, SEMANTIC_RATE_HZ)
_STEP = CODEC_RATE_HZ // _COMMON_HZ  # samples taken in ...
_PHASES = SEMANTIC_RATE_HZ // _COMMON_HZ  # ... for so many samples made
_CUT_OFF = min(_STEP, _PHASES) * ROLLOFF
_REACH_SAMPLES = math.ceil(ZERO_CROSSINGS * _STEP / _CUT_OFF)  # the filter's, on each side


def to_semantic_rate(samples: Tensor) -> Tensor:
    """float32 [L] at 24 kHz to [ceil(L * 2 / 3)] at 16 kHz."""
    padded = F.pad(samples, (_REACH_SAMPLES, _REACH_SAMPLES + _STEP))
    phases = F.conv1d(padded[None, None], _filters().to(samples.device), stride=_STEP)
    made = -(-len(samples) * _PHASES // _STEP)
    return phases[0].T.reshape(-1)[:made]


@lru_cache(maxsize=1)
def _filters() -> Tensor:
    """A filter for each phase: [phases, 1, reach + step + reach]."""
    taps = torch.arange(-_REACH_SAMPLES, _REACH_SAMPLES + _STEP, dtype=torch.float64) / _STEP
    shifts = -torch.arange(_PHASES, dtype=torch.float64)[:, None] / _PHASES
    crossings = ((taps + shifts) * _CUT_OFF).clamp(-ZERO_CROSSINGS, ZERO_CROSSINGS)
    window = torch.cos(crossings * math.pi / ZERO_CROSSINGS / 2).square()
    filters = torch.sinc(crossings) * window * (_CUT_OFF / _STEP)
    return filters.to(torch.float32)[:, None]
