"""The tensors of a folder of safetensors files, one file or several with an index.

Only headers are read until a tensor is asked for, and one tensor at a time is then in memory.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"

NAMED = 5  # of many faults this many are named, beside their number


class CheckpointError(ValueError):
    """The files are not a checkpoint that can be loaded; names the file or the tensors."""


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """dtype: as safetensors writes it, such as "BF16"."""

    shape: tuple[int, ...]
    dtype: str


class Shards:
    """Which tensor lies in which file of a folder."""

    def __init__(self, folder: Path, file_of: Mapping[str, str]) -> None:
        self._folder = folder
        self._file_of = file_of

    @classmethod
    def of_folder(cls, folder: Path) -> Shards:
        """Read the index, or the header of the single file. Raises CheckpointError."""
        if (folder / INDEX).is_file():
            return cls(folder, _read_index(folder / INDEX))
        if (folder / SINGLE).is_file():
            with _opened(folder / SINGLE) as single:
                return cls(folder, dict.fromkeys(single.keys(), SINGLE))
        raise CheckpointError(f"{folder} holds neither {INDEX} nor {SINGLE}")

    @property
    def names(self) -> Collection[str]:
        return self._file_of.keys()

    def headers(self, names: Collection[str]) -> dict[str, TensorHeader]:
        """The headers of these tensors, all of them listed. Raises CheckpointError for a file that
        is missing, cut off or damaged, or that lacks a tensor which the index says it has."""
        found: dict[str, TensorHeader] = {}
        for file, wanted in self._by_file(names).items():
            path = self._folder / file
            with _opened(path) as shard:
                absent = sorted(set(wanted) - set(shard.keys()))
                if absent:
                    raise CheckpointError(f"{path} lacks {listed(absent)}, which {INDEX} promises")
                for name in wanted:
                    part = shard.get_slice(name)
                    found[name] = TensorHeader(tuple(part.get_shape()), part.get_dtype())
        return found

    def read(self, names: Collection[str]) -> Iterator[tuple[str, str, Tensor]]:
        """(file, name, tensor on the CPU), file by file. Raises CheckpointError as `headers`."""
        for file, wanted in self._by_file(names).items():
            with _opened(self._folder / file) as shard:
                for name in wanted:
                    try:
                        tensor = shard.get_tensor(name)
                    except SafetensorError as error:
                        raise CheckpointError(f"{self._folder / file}: {name}: {error}") from error
                    yield file, name, tensor

    def _by_file(self, names: Collection[str]) -> dict[str, list[str]]:
        grouped: dict[str, list[str]] = {}
        for name in names:
            grouped.setdefault(self._file_of[name], []).append(name)
        return dict(sorted(grouped.items()))


def listed(names: list[str]) -> str:
    """ "3 tensors: a, b, c"; of many, the first few."""
    shown = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
    return f"{len(names)} tensor{'' if len(names) == 1 else 's'}: {shown}"


def _opened(path: Path) -> Any:
    if not path.is_file():
        raise CheckpointError(f"{path} is missing")
    try:
        return safe_open(path, framework="pt", device="cpu")
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged or cut off ({error})") from error


def _read_index(path: Path) -> dict[str, str]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON: {error}") from error
    file_of = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(file_of, dict) or not file_of:
        raise CheckpointError(f"{path} has no weight_map")
    for name, file in file_of.items():
        # An index may come from anywhere: it must not lead out of its folder.
        if not isinstance(file, str) or Path(file).name != file:
            raise CheckpointError(f"{path}: {name} is to lie in {file!r}, which is no file name")
    return file_of
