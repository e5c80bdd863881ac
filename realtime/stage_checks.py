"""What is looked at before any stage starts: models, and the room on GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipelines.placement import GpuShare, check_placement, gpu_memory_bytes
from pipelines.weights import resolve_model, weight_bytes
from realtime.stage_settings import Higgs, SGLang, Stages, WhisperTorch


def check_models(stages: Stages) -> None:
    """Models that are folders must be whole. Raises WeightsError with what mends it."""
    if isinstance(stages.recogniser, WhisperTorch):
        resolve_model(stages.recogniser.model)
    if isinstance(stages.writer, SGLang):
        resolve_model(stages.writer.model, has_weights=stages.writer.has_weights)
    if isinstance(stages.speaker, Higgs):
        resolve_model(stages.speaker.model)


def check_gpus(stages: Stages, memory_bytes: Sequence[int] | None = None) -> None:
    """Raises StageError that names every claim that cannot be met.

    memory_bytes: of each GPU; None: those that are here. They are not looked at where no stage
    needs one.
    """
    shares = list(_shares(stages))
    if not shares:
        return
    found = gpu_memory_bytes() if memory_bytes is None else memory_bytes
    if not found:
        # Without a GPU `auto` is the CPU.
        shares = [share for share in shares if not _may_do_without(stages, share)]
    check_placement(shares, found)


def _shares(stages: Stages) -> Iterator[GpuShare]:
    """needs_bytes: the weights, which is what can be known before anything is loaded."""
    for role, choice in (
        ("recogniser", stages.recogniser),
        ("writer", stages.writer),
        ("speaker", stages.speaker),
    ):
        if not isinstance(choice, WhisperTorch | SGLang | Higgs) or choice.card is None:
            continue
        is_read = not isinstance(choice, SGLang) or choice.has_weights
        needs_bytes = weight_bytes(choice.model) if is_read else 0
        yield GpuShare(role, choice.card, choice.memory_share, needs_bytes)


def _may_do_without(stages: Stages, share: GpuShare) -> bool:
    choice = {"recogniser": stages.recogniser, "speaker": stages.speaker}.get(share.stage)
    return isinstance(choice, WhisperTorch | Higgs) and choice.device == "auto"
