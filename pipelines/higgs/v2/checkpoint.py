"""Loads a v2 checkpoint, as it was published or as transformers keeps it.

The published names could be checked against the model's code and transformers' conversion only: no
published file was at hand. Where one differs, the error names the tensors.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from pipelines.higgs.checkpoint.loading import check, fill
from pipelines.higgs.checkpoint.shards import Shards
from pipelines.higgs.config import read_config
from pipelines.higgs.parts import CODEC_FOLDER
from pipelines.higgs.v2.config import V2Config
from pipelines.higgs.v2.parameters import DualParameters
from pipelines.higgs.v2.tensors import CONVERTED, PUBLISHED, TensorNames, empty_parameters, places
from pipelines.ports import Progress


def load(
    folder: Path, device: torch.device | str, dtype: torch.dtype, progress: Progress
) -> tuple[V2Config, DualParameters]:
    """The model in `folder`, in memory of `device`; beside it, one tensor at a time is in memory.

    Raises HiggsConfigError, or CheckpointError before any weight is read, where files are missing
    or damaged, or tensors are missing, unknown, or of another shape or kind than config.json says.
    """
    progress("voice: checking the checkpoint")
    config, names, shards = inspect(folder)
    parameters = empty_parameters(config, device, dtype)
    fill(shards, _in_parts(places(config, parameters, names), names, shards), progress)
    return config, parameters


def inspect(folder: Path) -> tuple[V2Config, TensorNames, Shards]:
    """What `load` looks at before it reads a weight. Raises as it does."""
    content = read_config(folder)
    config = V2Config.of(content)
    names = PUBLISHED if "text_config" in content else CONVERTED
    shards = Shards.of_folder(folder)
    without_memory = empty_parameters(config, "meta", torch.bfloat16)
    outline = _in_parts(places(config, without_memory, names), names, shards)
    shapes = {name: tuple(place.shape) for name, place in outline.items()}
    check(folder, shards, shapes, names.unused)
    return config, names, shards


def codec_tensors(folder: Path) -> dict[str, Tensor]:
    """The codec's tensors, on the CPU, by the names that transformers has for them.

    v2 is published without its codec, which is a checkpoint of its own: it must lie in the folder
    CODEC_FOLDER within. Raises CheckpointError.
    """
    shards = Shards.of_folder(folder / CODEC_FOLDER)
    return {name: tensor for _, name, tensor in shards.read(shards.names)}


def codec_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of `codec_tensors`, from headers alone. Raises as it does."""
    shards = Shards.of_folder(folder / CODEC_FOLDER)
    return {name: header.shape for name, header in shards.headers(shards.names).items()}


def _in_parts(place_of: dict[str, Tensor], names: TensorNames, shards: Shards) -> dict[str, Tensor]:
    """The places of tensors that the files hold in two parts, cut where the files cut them."""
    found = dict(place_of)
    for name, (first, second) in names.split:
        if first in shards.names:
            place = found.pop(name)
            rows = shards.headers([first])[first].shape[0]
            found[first], found[second] = place[:rows], place[rows:]
    return found
