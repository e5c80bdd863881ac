"""The decoder in plain torch: any device, any precision, no compiled kernels.

It is what other decoders are measured against, and what runs where there is no GPU.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipelines.higgs.config import AudioConfig, HiggsConfig
from pipelines.higgs.model.backbone import Backbone, KeyValueCache
from pipelines.higgs.model.embedding import code_logits, embed_codes
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.higgs.model.rope import inverse_frequencies, rope_table
from pipelines.higgs.model.sampler import DrawParameters, draw_rows
from pipelines.higgs.ports import INVALID_CODE
from pipelines.higgs.row_faults import RowLimits, StepError, check
from pipelines.higgs.rows import LAST_DRAWN, NO_DRAW, NO_TOKEN, Codes, RowBatch

MAX_STEPS_UNDER_WAY = 2  # one runs while the codes of the one before are read


class Tables(Protocol):
    """What rows are made from and drawn with; see `parameters.HiggsParameters`."""

    @property
    def text_embedding(self) -> Tensor: ...

    @property
    def audio_embedding(self) -> Tensor: ...

    @property
    def audio_head(self) -> Tensor: ...


class RowDecoder:
    """`ports.Decoder` around layers: `forward` takes [R, H] and the rows they are of through them.

    Everything lies on the cache's device; a slot has as many positions as the cache.

    is_rowwise: a step's rows are run one after the other, each as a step of its own. Every
    operation then has a shape that depends on the row's position alone, so its codes are bit for
    bit those of running alone, whatever shares the step and however a prompt is split. This is how
    a CPU should work (a matrix product's rounding depends on how many rows it has); a GPU wants the
    rows together.
    """

    def __init__(
        self,
        audio: AudioConfig,
        tables: Tables,
        forward: Callable[[Tensor, RowBatch], Tensor],
        cache: KeyValueCache,
        *,
        row_limit: int,
        is_rowwise: bool,
    ) -> None:
        self._audio = audio
        self._tables = tables
        self._forward = forward
        self._cache = cache
        _, self._slots, _, self._positions, _ = cache.keys.shape
        self._row_limit = row_limit
        self._limits = RowLimits(
            slots=self._slots,
            positions=self._positions,
            vocabulary_size=len(tables.text_embedding),
            codebooks=audio.codebooks,
            codebook_size=audio.codebook_size,
        )
        self._device = cache.keys.device
        self._is_rowwise = is_rowwise
        self._last_drawn = torch.zeros(
            (self._slots, audio.codebooks), dtype=torch.int32, device=self._device
        )
        self._drawn: deque[Tensor] = deque()
        self._is_closed = False

    @property
    def slots(self) -> int:
        return self._slots

    @property
    def positions(self) -> int:
        return self._positions

    @property
    def row_limit(self) -> int:
        return self._row_limit

    def launch(self, rows: RowBatch) -> None:
        """See `ports.Decoder.launch`. Raises StepError."""
        self._check_open()
        if len(self._drawn) >= MAX_STEPS_UNDER_WAY:
            raise StepError(f"{MAX_STEPS_UNDER_WAY} steps are launched and not collected")
        self._check(rows)
        with torch.inference_mode():
            if self._is_rowwise:
                alone = [taken(rows, np.array([number])) for number in range(len(rows))]
                self._drawn.append(torch.cat([self._run(row) for row in alone]))
            else:
                self._drawn.append(self._run(rows))

    def collect(self) -> Codes | None:
        """See `ports.Decoder.collect`."""
        self._check_open()
        return self._drawn.popleft().cpu().numpy() if self._drawn else None

    def copy(self, source: int, target: int, positions: int) -> None:
        """See `ports.Decoder.copy`. Raises StepError."""
        self._check_open()
        for slot in (source, target):
            if not 0 <= slot < self._slots:
                raise StepError(f"copy: slot {slot} is not one of {self._slots}")
        if not 0 <= positions <= self._positions:
            raise StepError(f"copy: {positions} positions, but a slot has {self._positions}")
        with torch.inference_mode():
            self._cache.copy(source, target, positions)

    def close(self) -> None:
        """Free the caches; what was not collected is lost."""
        if not self._is_closed:
            self._is_closed = True
            self._drawn.clear()
            del self._forward, self._cache, self._tables, self._last_drawn

    def _run(self, rows: RowBatch) -> Tensor:
        """One step over all of `rows`: int32 [R, codebooks]."""
        hidden = self._forward(self._embed(rows), rows)
        drawn = torch.full(rows.codes.shape, INVALID_CODE, dtype=torch.int32, device=self._device)
        drawing = np.flatnonzero(rows.ramps != NO_DRAW)
        if len(drawing):
            chosen = torch.from_numpy(drawing).to(self._device)
            drawn[chosen] = self._draw(hidden[chosen], taken(rows, drawing))
            last = {int(rows.slots[number]): int(number) for number in drawing}
            self._last_drawn[list(last)] = drawn[list(last.values())]
        return drawn

    def _codes(self, rows: RowBatch) -> Tensor:
        """int32 [R, codebooks]: the rows' codes, with those that their slots drew last."""
        codes = torch.from_numpy(rows.codes).to(self._device)
        return torch.where(codes == LAST_DRAWN, self._last_drawn[self._index(rows.slots)], codes)

    def _embed(self, rows: RowBatch) -> Tensor:
        """[R, H]."""
        tokens = self._index(rows.tokens)
        of_codes = embed_codes(self._codes(rows), self._tables.audio_embedding, self._audio)
        of_tokens = self._tables.text_embedding[tokens.clamp(min=0)]
        return torch.where((tokens != NO_TOKEN).unsqueeze(1), of_tokens, of_codes)

    def _draw(self, hidden: Tensor, rows: RowBatch) -> Tensor:
        """The codes of rows that all draw: int32 [R, codebooks]."""
        logits = code_logits(hidden, self._tables.audio_head, self._audio)
        return draw_rows(logits, DrawParameters.of(rows, self._device), self._audio.begin_code)

    def _index(self, numbers: np.ndarray) -> Tensor:
        return torch.from_numpy(numbers.astype(np.int64)).to(self._device)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StepError("the decoder is closed")

    def _check(self, rows: RowBatch) -> None:
        if not 1 <= len(rows) <= self._row_limit:
            raise StepError(f"a step of {len(rows)} rows, but one takes 1 to {self._row_limit}")
        check(rows, self._limits)


class TorchDecoder(RowDecoder):
    """The decoder of Higgs TTS. The parameters lie on `device`; the caches have their dtype."""

    def __init__(
        self,
        config: HiggsConfig,
        parameters: HiggsParameters,
        *,
        slots: int,
        positions: int,
        row_limit: int,
        device: torch.device | str,
        is_rowwise: bool,
    ) -> None:
        body, dtype = config.backbone, parameters.norm.dtype
        cache = KeyValueCache.empty(
            body, slots=slots, positions=positions, device=device, dtype=dtype
        )
        is_rounded = dtype == torch.bfloat16
        rope = rope_table(inverse_frequencies(body), positions, device, is_rounded=is_rounded)
        backbone = Backbone(body, parameters, rope, cache)
        super().__init__(
            config.audio,
            parameters,
            lambda hidden, rows: backbone.forward(hidden, rows.slots, rows.positions),
            cache,
            row_limit=row_limit,
            is_rowwise=is_rowwise,
        )


def taken(rows: RowBatch, numbers: npt.NDArray[np.intp]) -> RowBatch:
    """Some of a batch's rows."""
    return RowBatch(
        slots=rows.slots[numbers],
        positions=rows.positions[numbers],
        tokens=rows.tokens[numbers],
        codes=rows.codes[numbers],
        ramps=rows.ramps[numbers],
        seeds=rows.seeds[numbers],
        draws=rows.draws[numbers],
        temperatures=rows.temperatures[numbers],
        top_p=rows.top_p[numbers],
        top_k=rows.top_k[numbers],
    )
