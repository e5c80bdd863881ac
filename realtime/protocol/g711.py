"""ITU-T G.711: mu-law and A-law as look-up tables.

Tables are built from the arithmetic of the recommendation: a code is a sign, a 3-bit segment and
a 4-bit step. Levels are scaled to 16 bits, as usual in software (mu-law's 14 bits times 4, A-law's
13 bits times 8).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Levels = npt.NDArray[np.int16]  # [256]: the level that each code stands for
Codes = npt.NDArray[np.uint8]  # [65536]: the code of each 16-bit level, indexed as uint16

_MU_LAW_BIAS = 132  # 33 of the 14-bit scale: makes every segment start at a power of two
_MU_LAW_CLIP = 32_635  # the largest 16-bit level that still has a code after the bias
_MU_LAW_INVERT = 0xFF  # every bit of a mu-law code travels inverted
_A_LAW_INVERT = 0x55  # every even bit of an A-law code travels inverted
_SIGN = 0x80


def _all_levels() -> npt.NDArray[np.int32]:
    """Every 16-bit level, at the index of its bits."""
    return np.arange(65_536, dtype=np.uint16).view(np.int16).astype(np.int32)


def _segment(magnitude: npt.NDArray[np.int32], lowest_bit: int) -> npt.NDArray[np.int32]:
    """How far the highest set bit lies above `lowest_bit`; 0 below it."""
    thresholds = np.array([1 << (lowest_bit + step) for step in range(1, 8)], dtype=np.int32)
    return np.searchsorted(thresholds, magnitude, side="right").astype(np.int32)


def mu_law_levels() -> Levels:
    code = np.arange(256, dtype=np.int32) ^ _MU_LAW_INVERT
    segment, step = (code >> 4) & 7, code & 15
    magnitude = (((step << 3) + _MU_LAW_BIAS) << segment) - _MU_LAW_BIAS
    return np.where(code & _SIGN, -magnitude, magnitude).astype(np.int16)


def mu_law_codes() -> Codes:
    level = _all_levels()
    magnitude = np.minimum(np.abs(level), _MU_LAW_CLIP) + _MU_LAW_BIAS
    segment = _segment(magnitude, lowest_bit=7)
    code = (segment << 4) | ((magnitude >> (segment + 3)) & 15)
    code |= np.where(level < 0, _SIGN, 0)
    return (code ^ _MU_LAW_INVERT).astype(np.uint8)


def a_law_levels() -> Levels:
    code = np.arange(256, dtype=np.int32) ^ _A_LAW_INVERT
    segment, step = (code >> 4) & 7, code & 15
    # Each level lies in the middle of its step; the two lowest segments share a step of 16.
    magnitude = np.where(
        segment == 0, (step << 4) + 8, ((step << 4) + 0x108) << np.maximum(segment - 1, 0)
    )
    return np.where(code & _SIGN, magnitude, -magnitude).astype(np.int16)


def a_law_codes() -> Codes:
    level = _all_levels()
    # A-law has no zero: 0..7 of the 13-bit scale mirror to -1..-8, hence the complement.
    magnitude = np.where(level < 0, ~level, level)
    segment = _segment(magnitude, lowest_bit=7)
    code = (segment << 4) | ((magnitude >> np.maximum(segment + 3, 4)) & 15)
    code |= np.where(level < 0, 0, _SIGN)
    return (code ^ _A_LAW_INVERT).astype(np.uint8)
