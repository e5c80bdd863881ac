"""Where the decoder looked as it wrote each token, and the path through the audio that follows.

After openai/whisper, timing.py: some heads of the cross-attention follow the speech; their weights
are evened out, and dynamic time warping (Sakoe and Chiba, 1978) finds the way through them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MEDIAN_POSITIONS = 7  # of the filter along the audio: 140 ms, less than a syllable
SPREAD_AT_LEAST = 1e-9  # of weights that are all alike

Weights = npt.NDArray[np.float64]


def align_tokens(weights: npt.NDArray[np.float32]) -> list[int]:
    """weights: [heads, tokens, positions], what each token looked at. Where each begins."""
    evened = weights.astype(np.float64)
    spread = np.maximum(evened.std(axis=1, keepdims=True), SPREAD_AT_LEAST)
    evened = (evened - evened.mean(axis=1, keepdims=True)) / spread
    return warp(-_median(evened).mean(axis=0))


def warp(costs: Weights) -> list[int]:
    """costs: [tokens, positions]. The position at which the cheapest way comes to each token.

    The way leads from the first token and position to the last, by one of either or of both.
    """
    tokens, positions = costs.shape
    total = np.full((tokens + 1, positions + 1), np.inf)
    total[0, 0] = 0.0
    for token in range(tokens):
        # Along a row the cheapest sum up to each place is found at once: the way enters the row at
        # some place, and pays for what lies between.
        sums = np.cumsum(costs[token])
        entered = np.minimum(total[token, :-1], total[token, 1:]) - (sums - costs[token])
        total[token + 1, 1:] = sums + np.minimum.accumulate(entered)
    begins = [0] * tokens
    token, position = tokens, positions
    while token > 0:
        begins[token - 1] = position - 1
        both, next_token = total[token - 1, position - 1], total[token - 1, position]
        next_position = total[token, position - 1]
        if position > 1 and next_position <= min(both, next_token):
            position -= 1
        elif both <= next_token:
            token, position = token - 1, position - 1
        else:
            token -= 1
    return begins


def _median(values: Weights) -> Weights:
    """Along the last axis, mirrored at its ends."""
    margin = MEDIAN_POSITIONS // 2
    if values.shape[-1] <= margin:
        return values
    padded = np.pad(values, ((0, 0), (0, 0), (margin, margin)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, MEDIAN_POSITIONS, axis=-1)
    return np.median(windows, axis=-1)
