"""How far each slot has come in its stretch of sound, and what a job has to feed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.higgs.codec.config import CodecConfig
from pipelines.higgs.codec.stream import NEVER_FRAMES
from pipelines.higgs.config import FRAME_SAMPLES
from pipelines.higgs.ports import CodecJob
from pipelines.higgs.rows import Codes


@dataclass(frozen=True, slots=True)
class Feed:
    """The frames that one job feeds, those that draw out an ending included.

    start: how many frames of the stretch came before. end: how many it has, or NEVER_FRAMES.
    skip, due: of the samples that come out for these frames, where the job's begin; how many.
    """

    slot: int
    codes: Codes
    start: int
    end: int
    skip: int
    due: int


class Stretches:
    """How far each slot has come in its stretch of sound."""

    def __init__(self, config: CodecConfig, slots: int, lag_samples: int) -> None:
        self._config = config
        self._lag_samples = lag_samples
        self._fed = [0] * slots

    def reset(self, slot: int) -> None:
        self._fed[slot] = 0

    def feeds(self, jobs: Sequence[CodecJob]) -> list[Feed]:
        """One for each job, in order. Raises ValueError; then no slot has moved."""
        if len({job.slot for job in jobs}) < len(jobs):
            raise ValueError("two jobs of one slot at once")
        for job in jobs:
            self._check(job)
        self._check_codes([job.codes for job in jobs if len(job.codes)])
        return [self._feed(job) for job in jobs]

    def _feed(self, job: CodecJob) -> Feed:
        start, codes, end = self._fed[job.slot], job.codes, NEVER_FRAMES
        first = start * FRAME_SAMPLES - self._lag_samples
        stop = (start + len(codes)) * FRAME_SAMPLES - self._lag_samples
        if job.ends:
            end = start + len(codes)
            stop = end * FRAME_SAMPLES
            drawn_out = -(-self._lag_samples // FRAME_SAMPLES) if end else 0
            codes = np.concatenate([codes, np.zeros((drawn_out, codes.shape[1]), codes.dtype)])
        self._fed[job.slot] = 0 if job.ends else start + len(codes)
        skip = max(-first, 0)
        return Feed(job.slot, codes, start, end, skip, max(stop - max(first, 0), 0))

    def _check(self, job: CodecJob) -> None:
        if not 0 <= job.slot < len(self._fed):
            raise ValueError(f"slot {job.slot} of {len(self._fed)}")
        codebooks = self._config.codebooks
        if job.codes.ndim != 2 or job.codes.shape[1] != codebooks:
            raise ValueError(f"codes of shape {list(job.codes.shape)}, not [frames, {codebooks}]")

    def _check_codes(self, codes: list[Codes]) -> None:
        """All at once: an engine's thread has little time for each of many slots."""
        if not codes:
            return
        every = np.concatenate(codes)
        lowest, highest, size = int(every.min()), int(every.max()), self._config.codebook_size
        if lowest < 0 or highest >= size:
            raise ValueError(
                f"codes from {lowest} to {highest} where the codec has 0 to {size - 1}"
            )
