"""Where a stage on PyTorch runs, and how much of the GPU it may take there."""

from __future__ import annotations

from pipelines.placement import enforce_share
from pipelines.types import StageError


def choose_device(device: str, gpu: int) -> str:
    """As torch calls it. device: cpu, cuda, or auto: cuda if it is there."""
    if device == "auto":
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
    return f"cuda:{gpu}" if device == "cuda" else device


def claim_device(place: str, memory_share: float | None, setting: str) -> None:
    """Hold this process to its share of a GPU. For the loading of a stage: this touches the GPU.

    place: of `choose_device`. setting: where the stage is configured, as `stages.speaker`.
    Raises StageError where there is no such GPU.
    """
    if place == "cpu":
        return
    import torch

    index = torch.device(place).index or 0
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if index >= count:
        there = f"PyTorch sees {count} GPUs here" if count else "PyTorch sees no GPU here"
        raise StageError(
            "no_cuda",
            f"{setting} is to run on {place}, but {there}: set {setting}.device to cpu, correct "
            f"{setting}.gpu, or look at `nvidia-smi` and at the PyTorch that is installed.",
        )
    if memory_share is not None:
        enforce_share(index, memory_share)
