"""What the last rows of speech of every slot were: it forces the end, and finds repetitions.

Both are functions of the rows that a slot was fed, so a sequence that is fed anew draws the same:

* From the row behind the first end code on, one codebook more in each row can only be the end
  code, from the first codebook on: the wind-down. (transformers starts it at an end code in
  whichever codebook, and so does this.)
* Codes that a codebook drew too often among its last rows are drawn again (see
  `member.Repetition`); begin and end codes do not count.

A row of begin codes alone begins a stretch of speech, and forgets what was before, another reply's
included. That is no approximation for windows of up to `codebooks + 1` rows: a codebook's last real
code of an earlier stretch lies further back than that when its first new one is drawn.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pipelines.higgs.config import AudioConfig
from pipelines.higgs.member import Repetition
from pipelines.higgs.rows import NO_TOKEN, RowBatch

_NO_REPETITION = Repetition(window_rows=1, limit=2)  # a window of one row never repeats twice


class RecentRows:
    """State on the decoder's device; nothing in it makes the host wait.

    window: int32 [slots, window_rows, codebooks]. winding: int64 [slots], how many codebooks from
    the first are past the end; 0 while speech goes on.
    """

    def __init__(
        self,
        slots: int,
        audio: AudioConfig,
        repetition: Repetition | None,
        device: torch.device | str,
    ) -> None:
        repetition = repetition or _NO_REPETITION
        if not 1 <= repetition.window_rows <= audio.codebooks + 1 or repetition.limit < 1:
            raise ValueError(
                f"repetition: a window of {repetition.window_rows} rows with a limit of "
                f"{repetition.limit} is not one of 1 to {audio.codebooks + 1} rows, limit 1 or more"
            )
        self._audio = audio
        self._limit = repetition.limit
        shape = (slots, repetition.window_rows, audio.codebooks)
        self._window = torch.full(shape, audio.begin_code, dtype=torch.int32, device=device)
        self._winding = torch.zeros(slots, dtype=torch.int64, device=device)

    def feed(self, rows: RowBatch, codes: Tensor) -> None:
        """Take a step's rows; codes: int32 [R, codebooks], those of the slots' last ones put in.

        Text leaves everything as it is.
        """
        for number in np.flatnonzero(rows.tokens == NO_TOKEN):
            self._push(int(rows.slots[number]), codes[number])

    def repeats(self, slots: Tensor, drawn: Tensor) -> Tensor:
        """Which of the codes drawn for the slots [R] are too many: bool [R, codebooks]."""
        window = self._window[slots]
        is_same = (window == drawn.unsqueeze(1)) & (window < self._audio.begin_code)
        return is_same.sum(dim=1) >= self._limit

    def forced(self, slots: Tensor) -> Tensor:
        """Where the end code is the only choice for the slots [R]: bool [R, codebooks]."""
        codebook = torch.arange(self._audio.codebooks, device=self._winding.device)
        return codebook < self._winding[slots].unsqueeze(1)

    def _push(self, slot: int, codes: Tensor) -> None:
        audio, begin = self._audio, self._audio.begin_code
        is_begin = (codes == begin).all()
        moved = torch.cat((self._window[slot, 1:], codes.unsqueeze(0)))
        self._window[slot] = moved.where(~is_begin, begin)
        is_over = (codes == audio.end_code).any()
        self._winding[slot] = torch.where(is_over, self._winding[slot] + 1, 0)
