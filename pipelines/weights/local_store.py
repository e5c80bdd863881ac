"""Where model files come from: an explicit path, the local store, registry packages, the hub.

The store is `$PARLEY_MODELS`, or `~/.cache/parley/models`, shared by all checkouts of one user.
Beside each file lie two small ones: a seal (`.sha256`: the hash that was seen, with the size and
time of the file that had it, so that a start does not hash 700 MB), and a `.NOTICE` with its
origin and licence.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pipelines.weights.catalogue import GROUPS, ModelFile, group_of

HASH_BLOCK_BYTES = 1 << 20  # large enough that hashing is bound by the processor


class WeightsError(Exception):
    """A model file cannot be had; the message names it and the command that mends it."""


class ModelMissing(WeightsError):
    """The file is not there."""


class ModelCorrupt(WeightsError):
    """The file is there, but it is not the pinned one."""


class FileState(StrEnum):
    PRESENT = "present"
    MISSING = "missing"
    CORRUPT = "corrupt"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `parley models`."""

    group: str
    path: Path
    size_bytes: int
    state: FileState


def store() -> Path:
    """The folder of the local store; it need not exist."""
    chosen = os.environ.get("PARLEY_MODELS")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "parley" / "models"


def path_of(file: ModelFile) -> Path:
    """Where `file` lies in the store, whether it is there or not."""
    return store().joinpath(*file.path.split("/"))


def resolve(file: ModelFile, explicit: Path | None = None) -> Path:
    """The path of a usable model file; never touches the network.

    An explicit path is taken as it is: it may hold another model than the pinned one. A file of
    the store is checked by size and seal, and hashed when the seal does not fit it.
    Raises ModelMissing or ModelCorrupt.
    """
    if explicit is not None:
        if not explicit.is_file():
            raise ModelMissing(f"There is no model file at {explicit}: correct the path.")
        return explicit
    path = path_of(file)
    match state_of(file):
        case FileState.PRESENT:
            return path
        case FileState.MISSING:
            raise ModelMissing(f"The model file {path} is missing: run `{_cure(file)}`.")
        case FileState.CORRUPT:
            raise ModelCorrupt(f"{_damage(file)}: run `{_cure(file)}`.")


def resolve_folder(files: Iterable[ModelFile], explicit: Path | None = None) -> Path:
    """The folder that holds all of `files`, for models that are loaded by folder.

    Raises ModelMissing or ModelCorrupt.
    """
    folders: set[Path] = set()
    for file in files:
        name = file.path.rpartition("/")[2]
        folders.add(resolve(file, None if explicit is None else explicit / name).parent)
    if len(folders) != 1:
        raise ValueError(f"the files lie in {len(folders)} folders")
    return folders.pop()


def status() -> list[Row]:
    """Every known file and its state, by size and seal; hashes only what has no fitting seal."""
    return [
        Row(group, path_of(file), file.size_bytes, state_of(file))
        for group, files in GROUPS.items()
        for file in files
    ]


def verify(group: str) -> list[str]:
    """Hash every file of a group; one message per file that is not as it should be.

    The seal of a damaged file is broken, so that the next fetch replaces the file.
    Raises ValueError for an unknown group.
    """
    problems: list[str] = []
    for file in files_of(group):
        path = path_of(file)
        if not path.is_file():
            problems.append(f"The model file {path} is missing: run `{_cure(file)}`.")
        elif hash_of(path) != file.sha256:
            _seal_of(path).unlink(missing_ok=True)
            problems.append(f"{_damage(file)}: run `{_cure(file)}`.")
        else:
            seal(path, file)
    return problems


def files_of(group: str) -> tuple[ModelFile, ...]:
    """Raises ValueError, naming the groups there are."""
    try:
        return GROUPS[group]
    except KeyError:
        known = ", ".join(GROUPS)
        raise ValueError(f"There is no model group {group!r}; there are: {known}.") from None


def state_of(file: ModelFile) -> FileState:
    """The state of a file of the store; hashes it only if its seal does not fit."""
    path = path_of(file)
    try:
        stat = path.stat()
    except OSError:
        return FileState.MISSING
    if stat.st_size != file.size_bytes:
        return FileState.CORRUPT
    if _sealed(path, stat, file):
        return FileState.PRESENT
    if hash_of(path) != file.sha256:
        return FileState.CORRUPT
    seal(path, file)
    return FileState.PRESENT


def hash_of(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while block := opened.read(HASH_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def seal(path: Path, file: ModelFile) -> None:
    """Remember that `path` had the pinned hash. A store that cannot be written is hashed anew."""
    stat = path.stat()
    record = {"sha256": file.sha256, "size_bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    target = _seal_of(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        partial.write_text(json.dumps(record) + "\n", encoding="utf-8")
        partial.replace(target)


def _sealed(path: Path, stat: os.stat_result, file: ModelFile) -> bool:
    try:
        record = json.loads(_seal_of(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    expected = {"sha256": file.sha256, "size_bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    return record == expected


def _seal_of(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _damage(file: ModelFile) -> str:
    path = path_of(file)
    size_bytes = path.stat().st_size if path.is_file() else 0
    if size_bytes != file.size_bytes:
        return f"The model file {path} has {size_bytes} bytes instead of {file.size_bytes}"
    return f"The model file {path} is damaged (its sha256 is not {file.sha256[:12]}...)"


def _cure(file: ModelFile) -> str:
    return f"parley models fetch {group_of(file)}"
