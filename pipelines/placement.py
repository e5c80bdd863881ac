"""Which stage may take how much of which GPU: declared, summed and checked before anything starts.

Nothing here makes a CUDA context in the process that asks: that would cost it memory on the GPU,
and a process that has one can no longer fork.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.types import StageError

# What a worker takes outside of the share that it is held to: its CUDA context, loaded kernels
# and the workspaces of libraries. About half of it on current devices, and room for the rest.
CONTEXT_BYTES = 1 << 30
ROUNDING = 1e-9  # of shares that are written as decimals and add up to 1
NVML_LIBRARY = "libnvidia-ml.so.1"  # comes with the driver
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class GpuShare:
    """One stage's claim on a GPU, in a worker process of its own.

    gpu: its number among those that the workers can see.
    memory_share: of the GPU's memory, above 0 and at most 1; may be left out by whoever is alone.
    needs_bytes: the least that the stage can run with: its weights, caches and buffers.
    setting: where the claim stands in the configuration; by default `stages.STAGE`.
    is_needed: whether the stage cannot run where there is no GPU.
    """

    stage: str
    gpu: int
    memory_share: float | None = None
    needs_bytes: int = 0
    setting: str = ""
    is_needed: bool = True

    @property
    def place(self) -> str:
        return self.setting or f"stages.{self.stage}"


def check_placement(shares: Sequence[GpuShare], total_bytes_of_gpu: Sequence[int]) -> None:
    """Raises StageError `placement_refused` that names every claim that cannot be met.

    total_bytes_of_gpu: the memory of each GPU, as `gpu_memory_bytes` tells.
    """
    problems = [
        problem for share in shares for problem in _problems_of_one(share, total_bytes_of_gpu)
    ]
    for gpu in sorted({share.gpu for share in shares}):
        together = [share for share in shares if share.gpu == gpu]
        # What is promised more than once is wrong on any GPU, also where none can be seen.
        is_seen = 0 <= gpu < len(total_bytes_of_gpu)
        total_bytes = total_bytes_of_gpu[gpu] if is_seen else None
        problems += _problems_of_all(gpu, together, total_bytes)
    if problems:
        raise StageError("placement_refused", "\n".join(problems))


def enforce_share(gpu: int, memory_share: float) -> None:
    """Hold this process's PyTorch to its share: an allocation beyond raises OutOfMemoryError.

    For the factory of a stage, in its worker, before anything is on the GPU.
    """
    import torch  # seconds of loading, which only the worker that needs it pays

    torch.cuda.set_per_process_memory_fraction(memory_share, gpu)


def gpu_memory_bytes(library: Any = None, visible: str | None = None) -> tuple[int, ...]:
    """The memory of each GPU that a worker of this process can see; none without a driver.

    library: NVML, by default the driver's. visible: as CUDA_VISIBLE_DEVICES, by default the
    environment's. Numbers in it count as NVML does, which is CUDA's own order where the GPUs of a
    machine are alike or CUDA_DEVICE_ORDER is PCI_BUS_ID.
    """
    if visible is None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if library is None:
        try:
            library = ctypes.CDLL(NVML_LIBRARY)
        except OSError:
            return ()
    if library.nvmlInit_v2() != 0:
        return ()
    try:
        return tuple(_memory_bytes(library, handle) for handle in _handles(library, visible))
    finally:
        library.nvmlShutdown()


def _problems_of_one(share: GpuShare, total_bytes_of_gpu: Sequence[int]) -> Iterator[str]:
    count = len(total_bytes_of_gpu)
    part = share.memory_share
    if part is not None and not 0 < part <= 1:
        yield (
            f"The {share.stage} stage asks for a share of {part:g} of its GPU's memory: set "
            f"{share.place}.memory_share above 0 and at most 1."
        )
    if count == 0:
        if share.is_needed:
            yield (
                f"The {share.stage} stage is placed on GPU {share.gpu}, but no GPU can be seen "
                "here: look at `nvidia-smi` and CUDA_VISIBLE_DEVICES, or choose another stage."
            )
    elif not 0 <= share.gpu < count:
        there = "is only GPU 0" if count == 1 else f"are only GPUs 0 to {count - 1}"
        yield (
            f"The {share.stage} stage is placed on GPU {share.gpu}, but there {there}: change "
            f"{share.place}.gpu, or CUDA_VISIBLE_DEVICES."
        )
    else:
        yield from _problem_of_need(share, total_bytes_of_gpu[share.gpu])


def _problem_of_need(share: GpuShare, total_bytes: int) -> Iterator[str]:
    if share.memory_share is None:
        has_bytes = total_bytes - CONTEXT_BYTES
        what = f"GPU {share.gpu} leaves it {_gib(has_bytes)}"
        cure = "choose a larger GPU or a smaller model"
    else:
        has_bytes = total_bytes * share.memory_share
        what = (
            f"its share of {share.memory_share:g} of GPU {share.gpu} ({_gib(total_bytes)}) is "
            f"{_gib(has_bytes)}"
        )
        least = share.needs_bytes / total_bytes
        cure = f"set {share.place}.memory_share to at least {least + 0.005:.2f}"
        if least + CONTEXT_BYTES / total_bytes > 1:
            cure = "choose a larger GPU or a smaller model"
    if share.needs_bytes > has_bytes:
        yield f"The {share.stage} stage needs {_gib(share.needs_bytes)}, but {what}: {cure}."


def _problems_of_all(
    gpu: int, shares: Sequence[GpuShare], total_bytes: int | None
) -> Iterator[str]:
    """total_bytes: None of a GPU that cannot be seen."""
    undeclared = [share for share in shares if share.memory_share is None]
    if len(shares) > 1 and undeclared and total_bytes is not None:
        settings = " and ".join(f"{share.place}.memory_share" for share in undeclared)
        yield (
            f"The stages {_names(shares)} share GPU {gpu}, so each must say how much of it is its "
            f"own: set {settings}."
        )
    declared = [share for share in shares if share.memory_share is not None]
    contexts = 0.0 if total_bytes is None else len(declared) * CONTEXT_BYTES / total_bytes
    total = sum(share.memory_share or 0.0 for share in declared)
    if total + contexts > 1 + ROUNDING:
        summed = " + ".join(f"{share.memory_share:g} ({share.stage})" for share in declared)
        settings = " or ".join(f"{share.place}.memory_share" for share in declared)
        size = "" if total_bytes is None else f" ({_gib(total_bytes)})"
        beside = (
            f", and {contexts:.3f} for the CUDA contexts of {len(declared)} processes "
            f"({_gib(CONTEXT_BYTES)} each)"
        )
        yield (
            f"GPU {gpu}{size} is promised more than once: {summed} = {total:g} of its memory"
            f"{beside if contexts else ''}. Together they may be 1: lower {settings}."
        )


def _names(shares: Iterable[GpuShare]) -> str:
    *most, last = [share.stage for share in shares]
    return f"{', '.join(most)} and {last}"


def _gib(size_bytes: float) -> str:
    return f"{size_bytes / GIB:.1f} GiB"


class _Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


def _handles(library: Any, visible: str | None) -> Iterator[ctypes.c_void_p]:
    if visible is None:
        count = ctypes.c_uint()
        if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return
        visible = ",".join(map(str, range(count.value)))
    for name in visible.split(","):
        handle = ctypes.c_void_p()
        name = name.strip()
        if name.isdecimal():
            found = library.nvmlDeviceGetHandleByIndex_v2(int(name), ctypes.byref(handle))
        else:
            found = library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
        if found != 0:
            return  # as CUDA does: what stands behind a name that is none cannot be seen
        yield handle


def _memory_bytes(library: Any, handle: ctypes.c_void_p) -> int:
    memory = _Memory()
    if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) != 0:
        raise StageError(
            "placement_refused",
            "The driver does not tell how much memory a GPU has: look at `nvidia-smi`.",
        )
    return memory.total
