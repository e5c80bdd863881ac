"""The v2 decoder in plain torch: any device, any precision, no compiled kernels."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from pipelines.higgs.member import Repetition
from pipelines.higgs.model.backbone import KeyValueCache
from pipelines.higgs.model.decoder import RowDecoder
from pipelines.higgs.model.embedding import code_logits
from pipelines.higgs.model.rope import rope_table
from pipelines.higgs.model.sampler import DrawParameters, draw_rows
from pipelines.higgs.ports import INVALID_CODE
from pipelines.higgs.rows import NO_TOKEN, RowBatch
from pipelines.higgs.v2.backbone import DualBackbone
from pipelines.higgs.v2.config import V2Config
from pipelines.higgs.v2.parameters import DualParameters
from pipelines.higgs.v2.recent import RecentRows
from pipelines.higgs.v2.rope import inverse_frequencies

_REDRAW_SEED = 0x5BD1E995  # so that the noise of a second draw is not that of the first


class V2TorchDecoder(RowDecoder):
    """`ports.Decoder`. A text token goes through the text experts, codes through the audio ones.

    The parameters must be on `device`; their dtype is that of the caches. repetition: None draws
    every code once. Of the rows of one slot in a step, the one that draws must be the last. `copy`
    takes the cache alone: what it copies must end outside of speech, as preambles do.
    """

    def __init__(
        self,
        config: V2Config,
        parameters: DualParameters,
        *,
        slots: int,
        positions: int,
        row_limit: int,
        device: torch.device | str,
        is_rowwise: bool,
        repetition: Repetition | None,
    ) -> None:
        body, dtype = config.backbone, parameters.norm.dtype
        cache = KeyValueCache.empty(
            body, slots=slots, positions=positions, device=device, dtype=dtype
        )
        frequencies = inverse_frequencies(body.head_dim, body.rope_theta, config.rope_scaling)
        rope = rope_table(frequencies, positions, device, is_rounded=dtype == torch.bfloat16)
        backbone = DualBackbone(body, parameters, rope, cache)
        super().__init__(
            config.audio,
            parameters,
            lambda hidden, rows: backbone.forward(
                hidden, rows.tokens == NO_TOKEN, rows.slots, rows.positions
            ),
            cache,
            row_limit=row_limit,
            is_rowwise=is_rowwise,
        )
        self._repeats_limited = repetition is not None
        self._recent = RecentRows(slots, config.audio, repetition, device)

    def _run(self, rows: RowBatch) -> Tensor:
        self._recent.feed(rows, self._codes(rows))
        return super()._run(rows)

    def _draw(self, hidden: Tensor, rows: RowBatch) -> Tensor:
        audio, slots = self._audio, self._index(rows.slots)
        logits = code_logits(hidden, self._tables.audio_head, audio)
        parameters = DrawParameters.of(rows, self._device)
        drawn = draw_rows(logits, parameters, audio.begin_code)
        codes = drawn
        if self._repeats_limited:
            again = draw_rows(logits, _plain(parameters), audio.begin_code)
            codes = again.where(self._recent.repeats(slots, drawn), drawn)
        codes = codes.masked_fill(self._recent.forced(slots), audio.end_code)
        return codes.where(drawn != INVALID_CODE, INVALID_CODE)


def _plain(parameters: DrawParameters) -> DrawParameters:
    """To draw from the softmax of the logits as they are."""
    return replace(
        parameters,
        seeds=parameters.seeds ^ _REDRAW_SEED,
        temperatures=torch.ones_like(parameters.temperatures),
        top_p=torch.ones_like(parameters.top_p),
        top_k=torch.zeros_like(parameters.top_k),
    )
