"""The recogniser: Whisper on CTranslate2, for whole turns."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from pipelines.ports import Progress
from pipelines.runtime.cpu import CpuToken
from pipelines.stages.whisper_ctranslate2 import CTranslate2Engine
from pipelines.stages.whisper_model import WhisperModel
from pipelines.stages.whisper_stage import (
    DEFAULT_LANGUAGE,
    PARTIAL_IN_PASSING_EVERY_S,
    WhisperStage,
)
from pipelines.types import HEARING_RATE_HZ, StageError
from pipelines.weights import resolve_folder
from pipelines.weights.catalogue import WHISPER_BASE, WHISPER_TINY_EN

MODELS = {"base": WHISPER_BASE, "tiny.en": WHISPER_TINY_EN}
DEFAULT_MODEL = "base"

# A run cannot be broken off: on two cores only long turns gain more by partials than they lose.
PARTIAL_ON_FEW_CORES_EVERY_S = 4.5
FEW_CORES = 3


class WhisperRecogniser(WhisperStage):
    """`pipelines.ports.Recogniser`. A request gets partials only if the CPU is free.

    model: a name of `MODELS`; folder: model.bin, config.json and vocabulary.txt used instead.
    language: for requests that name none; None lets the model decide.
    partials: whether there are any of speech that nobody waits for.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        folder: Path | None = None,
        *,
        language: str | None = DEFAULT_LANGUAGE,
        cpu: CpuToken | None = None,
        threads: int = 2,
        partials: bool = True,
    ) -> None:
        if model not in MODELS:
            raise ValueError(f"There is no recogniser {model!r}; there are: {', '.join(MODELS)}.")

        def load(progress: Progress) -> WhisperModel:
            found = resolve_folder(MODELS[model], folder)
            progress(f"recogniser: loading {found}")
            try:
                loaded = WhisperModel(CTranslate2Engine(found, threads))
            except (RuntimeError, ValueError) as error:
                raise StageError(
                    "asr_failed", f"The recogniser in {found} could not be loaded: {error}"
                ) from error
            for _ in loaded.hear(np.zeros(HEARING_RATE_HZ, np.float32), DEFAULT_LANGUAGE):
                break
            return loaded

        super().__init__(
            load,
            language=language,
            cpu=cpu,
            in_passing_every_s=_in_passing_every_s() if partials else None,
        )


def _in_passing_every_s() -> float:
    has_few_cores = (os.cpu_count() or 1) <= FEW_CORES
    return PARTIAL_ON_FEW_CORES_EVERY_S if has_few_cores else PARTIAL_IN_PASSING_EVERY_S
