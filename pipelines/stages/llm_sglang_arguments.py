"""What the engine is started with: a configuration in the words of whichever release is there."""

from __future__ import annotations

import inspect
import logging
import os
import shutil
import subprocess
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.types import StageError

log = logging.getLogger(__name__)

# Backends whose kernels need not be compiled by nvcc and ninja at their first use.
ATTENTION_AS_IT_IS = "triton"
SAMPLING_AS_IT_IS = "pytorch"

# What the engine needs beside weights and cache: its context on the device, the graphs of its
# batches and the activations of a step. Its own share counts weights and cache alone.
RESERVED_MIB = 3072
LEAST_STATIC_SHARE = 0.01  # below, there is no room for any model
MOST_STATIC_SHARE = 0.95  # of what is free: the engine measures after others have begun
QUERY_TIMEOUT_S = 20.0  # of the driver's tool, which takes a second or two on a large host


@dataclass(frozen=True, slots=True)
class SGLangOptions:
    """A language model on one GPU.

    model: a folder with config.json, weights, tokenizer and chat template.
    memory_share: of the whole card, 0 to 1: weights, cache and all else of this stage.
    gpu: its number among the visible ones.
    running: replies that are written at once; more wait for their turn.
    graph_batch: the largest batch that has a graph of its own; None: as many as run.
    attention, sampling: names of the engine's backends; None: what it prefers on this card, or, on
        a machine without a compiler for it, one that needs none.
    load_format: of the weights; dummy: random ones, for measurements.
    follows_schemas: whether the engine holds a demanded call to its schema; it then has a tokenizer
        of its own, and sends outputs by one process more.
    temperature, top_p, top_k: for requests that name none.
    """

    model: Path
    memory_share: float
    context_tokens: int = 8192
    gpu: int = 0
    running: int = 32
    graph_batch: int | None = None
    attention: str | None = None
    sampling: str | None = None
    load_format: str = "auto"
    follows_schemas: bool = True
    temperature: float = 0.7
    top_p: float = 0.8
    top_k: int = 20


def engine_arguments(
    options: SGLangOptions,
    known: Collection[str],
    memory_mib: tuple[int, int] | None,
    *,
    can_compile: bool = True,
) -> dict[str, Any]:
    """Keyword arguments of the engine.

    known: the names that this release takes; a setting that has had several names gets the one that
    is known, and one that is unknown is left to the engine. memory_mib: of the card, in all and
    free at this moment; None: not known, so the engine's own reckoning holds. can_compile: whether
    this machine can make what the engine compiles at its first use.
    """
    arguments: dict[str, Any] = {
        "model_path": str(options.model),
        "skip_tokenizer_init": not options.follows_schemas,
        "mem_fraction_static": _static_share(options.memory_share, memory_mib),
        "context_length": options.context_tokens,
        "max_running_requests": options.running,
        "base_gpu_id": options.gpu,
        "load_format": options.load_format,
        "log_level": "warning",
    }
    wished: dict[tuple[str, ...], Any] = {
        ("attention_backend",): options.attention or (None if can_compile else ATTENTION_AS_IT_IS),
        ("sampling_backend",): options.sampling or (None if can_compile else SAMPLING_AS_IT_IS),
        ("cuda_graph_max_bs_decode", "cuda_graph_max_bs"): options.graph_batch or options.running,
        # Each output has all ids from the first one on, so none is lost when several come at once.
        ("incremental_streaming_output",): False,
        # Urgency is a number of which less is more; nobody is thrown out for somebody else.
        ("enable_priority_scheduling",): True,
        ("schedule_low_priority_values_first",): True,
    }
    for names, value in wished.items():
        name = next((name for name in names if name in known), None)
        if name is not None and value is not None:
            arguments[name] = value
    return arguments


def can_compile_kernels() -> bool:
    """Whether nvcc, ninja and a compiler of C++ are there; a warning names what is not, and what
    comes of it."""
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    found = {
        "nvcc": shutil.which("nvcc") or shutil.which("nvcc", path=f"{home}/bin"),
        "ninja": shutil.which("ninja"),
        "c++": shutil.which(os.environ.get("CXX") or "c++"),
    }
    missing = [name for name, path in found.items() if path is None]
    if missing:
        log.warning(
            "the language model's engine takes %s for attention and %s for sampling where the "
            "settings name no others, since its own need %s, which cannot be found here",
            ATTENTION_AS_IT_IS,
            SAMPLING_AS_IT_IS,
            " and ".join(missing),
        )
    return not missing


def known_arguments(server_args: type) -> set[str]:
    """The names that a release's `ServerArgs` takes; it has been a class of several kinds."""
    found = set(inspect.signature(server_args).parameters)
    for kind in server_args.__mro__:
        found |= set(getattr(kind, "__annotations__", ()))
    return found


def card_memory_mib(
    gpu: int, ask: Callable[[str], str | None] | None = None
) -> tuple[int, int] | None:
    """The card's memory in all and what of it is free; None where the driver's tool is missing.

    Asked without touching the card: whoever does keeps half a GiB of it for good.
    """
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    name = visible[gpu] if visible[0] and gpu < len(visible) else str(gpu)
    answer = (ask or _ask_driver)(name)
    try:
        total_mib, free_mib = map(int, (answer or "").strip().split(","))
    except ValueError:
        return None
    return total_mib, free_mib


def _ask_driver(card: str) -> str | None:
    command = ["nvidia-smi", f"--id={card}", "--query-gpu=memory.total,memory.free"]
    try:
        done = subprocess.run(
            [*command, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=QUERY_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _static_share(memory_share: float, memory_mib: tuple[int, int] | None) -> float:
    """The engine's share counts weights and cache, and is one of what is free when it starts."""
    if memory_mib is None:
        return memory_share
    total_mib, free_mib = memory_mib
    static_mib = memory_share * total_mib - RESERVED_MIB
    share = static_mib / max(free_mib, 1)
    if memory_share * total_mib > free_mib:
        raise StageError(
            "llm_failed",
            f"stages.writer.memory_share is {memory_share:g}, which is "
            f"{memory_share * total_mib:.0f} MiB, and only {free_mib} MiB of the card are free: "
            "lower it, or end what else uses the card.",
        )
    if share < LEAST_STATIC_SHARE:
        raise StageError(
            "llm_failed",
            f"stages.writer.memory_share is {memory_share:g}: of a card of {total_mib} MiB that "
            f"leaves no room for a language model beside the {RESERVED_MIB} MiB that the engine "
            "needs for itself. Give it a larger share.",
        )
    return round(min(share, MOST_STATIC_SHARE), 4)
