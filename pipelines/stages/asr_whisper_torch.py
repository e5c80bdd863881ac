"""The recogniser on a GPU: any Whisper of a model hub, on PyTorch, for whole turns."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipelines.ports import Progress
from pipelines.runtime.cpu import CpuToken
from pipelines.stages.torch_device import claim_device
from pipelines.stages.whisper_model import FULL_WINDOW_S, WhisperModel
from pipelines.stages.whisper_stage import (
    DEFAULT_LANGUAGE,
    PARTIAL_IN_PASSING_EVERY_S,
    WhisperStage,
)
from pipelines.types import HEARING_RATE_HZ, StageError
from pipelines.weights import cure_of_folder

MISSING = (
    "The recogniser needs PyTorch and transformers, which are not installed here ({cause}): "
    "install the extra `higgs` (`pip install -e '.[higgs]'`), or choose another recogniser."
)
SETTING = "stages.recogniser.model"


class TorchWhisperRecogniser(WhisperStage):
    """`pipelines.ports.Recogniser`. A request that is aborted ends with the token at hand.

    folder: a checkpoint as `transformers` writes it. device: as torch calls it.
    language: for requests that name none; None lets the model decide.
    partials: whether there are any of speech that nobody waits for.
    cpu: on the CPU, what it gives way to between tokens.
    memory_share: of the GPU, that this process is held to; None: all of it.
    """

    def __init__(
        self,
        folder: Path,
        device: str = "cpu",
        *,
        language: str | None = DEFAULT_LANGUAGE,
        cpu: CpuToken | None = None,
        partials: bool = True,
        memory_share: float | None = None,
    ) -> None:
        def load(progress: Progress) -> WhisperModel:
            progress(f"recogniser: loading {folder} on {device}")
            claim_device(device, memory_share, "stages.recogniser")
            model = _load(folder, device)
            # The first calls choose kernels and take memory: on a GPU for both windows.
            for warm_s in (1.0, FULL_WINDOW_S) if device != "cpu" else (1.0,):
                silence = np.zeros(int(warm_s * HEARING_RATE_HZ), np.float32)
                next(model.hear(silence, DEFAULT_LANGUAGE))
            return model

        super().__init__(
            load,
            language=language,
            cpu=cpu,
            in_passing_every_s=PARTIAL_IN_PASSING_EVERY_S if partials else None,
        )


def _load(folder: Path, device: str) -> WhisperModel:
    try:
        from pipelines.stages.whisper_checkpoint import WhisperCheckpointError
        from pipelines.stages.whisper_torch import TorchEngine
    except ImportError as error:
        raise StageError("asr_failed", MISSING.format(cause=error)) from error
    try:
        return WhisperModel(TorchEngine(folder, device))
    except (WhisperCheckpointError, FileNotFoundError) as error:
        raise _refused(folder, error) from error
    except (RuntimeError, AssertionError) as error:  # the latter of a PyTorch without CUDA
        raise StageError(
            "asr_failed",
            f"The recogniser in {folder} could not be loaded on {device}: {error}. Where memory is "
            "short, raise stages.recogniser.memory_share; without a GPU, set its device to cpu.",
        ) from error


def inspect_recogniser(folder: Path) -> None:
    """What can be known of a model before a weight is read. Raises StageError, ImportError."""
    from pipelines.stages.whisper_checkpoint import WhisperCheckpointError, inspect_checkpoint

    try:
        inspect_checkpoint(folder)
    except (WhisperCheckpointError, OSError) as error:
        raise _refused(folder, error) from error


def _refused(folder: Path, error: Exception) -> StageError:
    cure = cure_of_folder(folder, SETTING)
    if isinstance(error, FileNotFoundError):
        return StageError(
            "asr_model_missing", f"The recogniser {folder} lacks {error.filename}: {cure}."
        )
    return StageError("asr_model_refused", f"{folder} is no Whisper checkpoint: {error}; {cure}.")
