"""Loads a published checkpoint: checks all of it by its headers, then copies tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from pipelines.higgs.checkpoint.shards import NAMED, CheckpointError, Shards, TensorHeader, listed
from pipelines.higgs.checkpoint.tensors import (
    CODEC_PREFIX,
    HEAD_PREFIX,
    empty_parameters,
    places,
    shapes,
)
from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.ports import Progress

# Anything else is quantised or was never weights.
_WEIGHT_DTYPES = ("BF16", "F16", "F32")


def load(
    folder: Path, device: torch.device | str, dtype: torch.dtype, progress: Progress
) -> tuple[HiggsConfig, HiggsParameters]:
    """The model in `folder`, in memory of `device`; beside it, one tensor at a time is in memory.

    Raises HiggsConfigError, or CheckpointError before any weight is read, where files are missing
    or damaged, or tensors are missing, unknown, or of another shape or kind than config.json says.
    """
    progress("voice: checking the checkpoint")
    config, shards = inspect(folder)
    parameters = empty_parameters(config, device, dtype)
    fill(shards, places(config, parameters), progress)
    return config, parameters


def inspect(folder: Path) -> tuple[HiggsConfig, Shards]:
    """What `load` looks at before it reads a weight. Raises as it does."""
    config = HiggsConfig.of_folder(folder)
    shards = Shards.of_folder(folder)
    # No text is ever drawn, so a text head is not used; nor is an audio head that is tied.
    check(folder, shards, shapes(config), unused=(CODEC_PREFIX, HEAD_PREFIX))
    return config, shards


def codec_tensors(folder: Path) -> dict[str, Tensor]:
    """The codec's tensors, on the CPU, by the names they have within the codec.

    Raises CheckpointError, also where the checkpoint has no codec.
    """
    shards = Shards.of_folder(folder)
    read = shards.read(_codec_names(folder, shards))
    return {name.removeprefix(CODEC_PREFIX): tensor for _, name, tensor in read}


def codec_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of `codec_tensors`, from headers alone. Raises as it does."""
    shards = Shards.of_folder(folder)
    headers = shards.headers(_codec_names(folder, shards))
    return {name.removeprefix(CODEC_PREFIX): header.shape for name, header in headers.items()}


def _codec_names(folder: Path, shards: Shards) -> list[str]:
    names = [name for name in shards.names if name.startswith(CODEC_PREFIX)]
    if not names:
        raise CheckpointError(f"{folder} holds no codec: no tensor is called {CODEC_PREFIX}...")
    return names


def check(
    folder: Path,
    shards: Shards,
    expected: Mapping[str, tuple[int, ...]],
    unused: tuple[str, ...],
) -> None:
    """Compare a checkpoint's names, shapes and dtypes with those expected; no weight is read.

    unused: prefixes of what it may hold besides. Raises CheckpointError.
    """
    missing = [name for name in expected if name not in shards.names]
    if missing:
        raise CheckpointError(f"{folder} lacks {listed(missing)}")
    others = [name for name in shards.names if name not in expected]
    unknown = [name for name in others if not name.startswith(unused)]
    if unknown:
        raise CheckpointError(
            f"{folder} holds what config.json does not speak of: {listed(unknown)}"
        )
    headers = shards.headers(shards.names)  # the codec's too: better now than when it speaks
    faults = [
        fault for name, shape in expected.items() if (fault := _fault(name, headers[name], shape))
    ]
    if faults:
        more = f", and {len(faults) - NAMED} more" if len(faults) > NAMED else ""
        raise CheckpointError(f"{folder}: {'; '.join(faults[:NAMED])}{more}")


def fill(shards: Shards, place_of: Mapping[str, Tensor], progress: Progress) -> None:
    """Copy tensors to their places, which may lie on another device and have another dtype."""
    current = ""
    with torch.inference_mode():
        for file, name, tensor in shards.read(place_of.keys()):
            if file != current:
                current = file
                progress(f"voice: loading {file}")
            place_of[name].copy_(tensor)


def _fault(name: str, header: TensorHeader, shape: tuple[int, ...]) -> str | None:
    if header.shape != shape:
        return f"{name} has shape {list(header.shape)}, not {list(shape)}"
    if header.dtype not in _WEIGHT_DTYPES:
        return f"{name} is {header.dtype}, not one of {', '.join(_WEIGHT_DTYPES)}"
    return None
