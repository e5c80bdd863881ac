"""Brings a repository's files from the model hub into the store.

Through the optional package `huggingface_hub`, with its ordinary configuration. A download that was
interrupted goes on where it ended; every file is checked by what the hub says of it. Not verified
against the real hub.
"""

from __future__ import annotations

import importlib
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from pipelines.ports import Progress
from pipelines.weights.fetching import FetchFailed, megabytes, sole_fetcher
from pipelines.weights.local_store import store
from pipelines.weights.repository import (
    Repository,
    by_hand,
    file_problem,
    problem_of,
    weight_files,
    write_listing,
)

REPORT_EVERY_S = 5.0  # a shard takes minutes
HUB_FOLDER = ".cache"  # where the package keeps what has not arrived whole
UNFINISHED = "*.incomplete"


@dataclass(frozen=True, slots=True)
class _File:
    """A file as the hub tells of it. sha256: of large files alone."""

    path: str
    size_bytes: int | None
    sha256: str | None


def fetch_repository(
    repository: Repository, progress: Progress, *, has_weights: bool = True
) -> Path:
    """Bring what is missing or damaged; returns the folder. Raises FetchFailed.

    has_weights: False for a model whose weights are made up.
    """
    hub = _hub(repository)
    folder = repository.folder
    try:
        store().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FetchFailed(
            f"The model store {store()} cannot be written ({error}): set PARLEY_MODELS to a folder "
            "that can."
        ) from error
    with sole_fetcher(store(), progress):
        commit, files = _listing(hub, repository)
        folder.mkdir(parents=True, exist_ok=True)
        about = [file for file in files if not _is_weights(file)]
        _fetch_files(hub, repository, commit, about, progress)
        # Named by the index, which is there by now.
        named = weight_files(folder) if has_weights else []
        weights = [file for file in files if _is_weights(file) and file.path in named]
        _fetch_files(hub, repository, commit, weights, progress)
        files = about + weights
        write_listing(folder, commit, {file.path: (file.size_bytes, file.sha256) for file in files})
        shutil.rmtree(folder / HUB_FOLDER, ignore_errors=True)
        problem = problem_of(folder, weights=has_weights)
    if problem is not None:
        raise FetchFailed(
            f"The repository {repository.name} is no whole model ({problem}): choose another one."
        )
    progress(f"{repository.name}: {len(files)} files in {folder}")
    return folder


def _fetch_files(
    hub: Any, repository: Repository, commit: str, files: list[_File], progress: Progress
) -> None:
    folder = repository.folder
    total_bytes = sum(file.size_bytes or 0 for file in files)
    done_bytes = 0

    def tally() -> str:
        so_far = done_bytes + _unfinished_bytes(folder)
        return f"{megabytes(so_far)} of {megabytes(total_bytes)} MB done"

    for file in files:
        path = folder.joinpath(*file.path.split("/"))
        if file_problem(path, file.size_bytes, file.sha256) is not None:
            with _told(lambda file=file: progress(f"{repository.name}/{file.path}: {tally()}")):
                _download(hub, repository, commit, file)
            problem = file_problem(path, file.size_bytes, file.sha256)
            if problem is not None:
                path.unlink(missing_ok=True)
                raise FetchFailed(
                    f"{file.path} of {repository.name} {problem}: the download was damaged; try "
                    "again."
                )
        done_bytes += file.size_bytes or 0
        progress(f"{repository.name}/{file.path}: {tally()}")


def _download(hub: Any, repository: Repository, commit: str, file: _File) -> None:
    folder = repository.folder
    # The package takes a file that is there for a good one.
    folder.joinpath(*file.path.split("/")).unlink(missing_ok=True)
    try:
        hub.hf_hub_download(
            repo_id=repository.name, filename=file.path, revision=commit, local_dir=str(folder)
        )
    except Exception as error:  # the package's own errors, which are not importable here
        raise FetchFailed(
            f"{file.path} of {repository.name} could not be fetched: {_line(error)}. What has "
            f"arrived is kept: try again, or {by_hand(repository)}"
        ) from error


def _listing(hub: Any, repository: Repository) -> tuple[str, list[_File]]:
    """The commit that a revision means, and those of its files that are wanted."""
    try:
        info = hub.HfApi().model_info(
            repository.name, revision=repository.revision, files_metadata=True
        )
    except Exception as error:
        raise FetchFailed(
            f"The repository {repository.name} ({repository.revision}) cannot be read from the "
            f"model hub: {_line(error)}. Try again where it can be reached, or "
            f"{by_hand(repository)}"
        ) from error
    files = [
        _File(entry.rfilename, entry.size, _sha256(entry.lfs))
        for entry in info.siblings or ()
        if _is_wanted(entry.rfilename, repository.patterns)
    ]
    if not files:
        raise FetchFailed(f"The repository {repository.name} has no files of a model.")
    # Small ones first: what is wrong with a repository shows before its weights are fetched.
    return str(info.sha), sorted(files, key=lambda file: (file.size_bytes or 0, file.path))


def _is_wanted(path: str, patterns: tuple[str, ...]) -> bool:
    """Files of the folder itself: in folders below lie other formats of the same weights."""
    place = PurePosixPath(path)
    return len(place.parts) == 1 and any(fnmatch(place.name, pattern) for pattern in patterns)


def _is_weights(file: _File) -> bool:
    return file.path.endswith(".safetensors")


def _sha256(lfs: Any) -> str | None:
    """Releases of the package tell it as a dictionary or as an object."""
    found = lfs.get("sha256") if isinstance(lfs, dict) else getattr(lfs, "sha256", None)
    return found if isinstance(found, str) else None


def _hub(repository: Repository) -> Any:
    try:
        hub = importlib.import_module("huggingface_hub")
    except ModuleNotFoundError as error:
        raise FetchFailed(
            f"The model {repository.name} comes from a model hub, which needs a package that is "
            f"not here: `pip install huggingface_hub`. Without it, {by_hand(repository)}"
        ) from error
    with suppress(Exception):  # what is told here is enough
        importlib.import_module("huggingface_hub.utils").disable_progress_bars()
    return hub


def _unfinished_bytes(folder: Path) -> int:
    total_bytes = 0
    for path in (folder / HUB_FOLDER).rglob(UNFINISHED):
        with suppress(OSError):  # it has just become whole
            total_bytes += path.stat().st_size
    return total_bytes


@contextmanager
def _told(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` now and then while something long runs in this thread."""
    over = threading.Event()

    def report() -> None:
        while not over.wait(REPORT_EVERY_S):
            tell()

    thread = threading.Thread(target=report, name="fetching", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
