"""The delay pattern: how frames of codes lie in the decoder's rows.

Codebook k of a frame stands k rows later than codebook 0, so `codebooks - 1` more rows than frames
are needed. Arrays of codes are int32 [rows or frames, codebooks].
"""

from __future__ import annotations

import numpy as np

from pipelines.higgs.rows import Codes


def delay(codes: Codes, begin_code: int, end_code: int) -> Codes:
    """[T, K] frames -> [T + K - 1, K] rows: BOC before a codebook's first code, EOC after its last.

    A stretch without frames has no rows.
    """
    frames, codebooks = codes.shape
    if frames == 0:
        return np.empty((0, codebooks), np.int32)
    rows = np.empty((frames + codebooks - 1, codebooks), np.int32)
    for codebook in range(codebooks):
        rows[:codebook, codebook] = begin_code
        rows[codebook : codebook + frames, codebook] = codes[:, codebook]
        rows[codebook + frames :, codebook] = end_code
    return rows


def undelay(rows: Codes) -> Codes:
    """[L, K] rows -> the [frames_of(L, K), K] frames whose codes are all there, specials too."""
    count, codebooks = rows.shape
    frames = frames_of(count, codebooks)
    codes = np.empty((frames, codebooks), np.int32)
    for codebook in range(codebooks):
        codes[:, codebook] = rows[codebook : codebook + frames, codebook]
    return codes


def frames_of(rows: int, codebooks: int) -> int:
    """How many frames are complete after so many rows.

    The same number is kept where speech is stopped for its length: the `codebooks - 1` frames of
    which only the first codes were drawn are lost.
    """
    return max(0, rows - (codebooks - 1))
