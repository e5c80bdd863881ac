"""Recordings on the server's own disk: files inside the folders that its operator names."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

# A FIFO must not make its reader wait, nor a link lead elsewhere; not every system knows these.
_CAREFULLY = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


class PathRefused(Exception):
    """A path that is not read. The message says why, and nothing of what lies outside."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def read_inside(path: str, folders: Sequence[Path], largest_bytes: int) -> bytes:
    """A regular file's bytes. Links are followed first: what counts is where they lead.

    Blocking. Raises PathRefused: path_not_allowed, path_unreadable or reference_too_large.
    """
    if not folders:
        raise PathRefused(
            "path_not_allowed",
            "This server reads no files for its clients; its operator can name folders for that "
            "(speech.reference_folders). Send the recording itself.",
        )
    place = _place_inside(path, folders)
    try:
        descriptor = os.open(place, _CAREFULLY)
    except OSError as error:
        raise PathRefused(
            "path_unreadable", f"The file cannot be read: {error.strerror}."
        ) from error
    try:
        # Between the two looks a folder on the way may have become a link.
        is_moved = _place_inside(path, folders) != place or not _is_at(place, descriptor)
        if is_moved or not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise PathRefused("path_unreadable", "The path leads to no regular file.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(largest_bytes + 1)
    finally:
        os.close(descriptor)
    if len(data) > largest_bytes:
        raise PathRefused(
            "reference_too_large", f"The file is larger than {largest_bytes // 2**20} MiB."
        )
    return data


def _place_inside(path: str, folders: Sequence[Path]) -> Path:
    try:
        if Path(path).is_absolute():
            place = Path(path).resolve()
            if any(place.is_relative_to(folder.resolve()) for folder in folders):
                return place
    except (OSError, RuntimeError, ValueError):  # loops of links, names that cannot be
        pass
    raise PathRefused(
        "path_not_allowed",
        "The path does not lead into a folder that this server's operator allows "
        "(speech.reference_folders): give an absolute path inside one.",
    )


def _is_at(place: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(place), os.fstat(descriptor))
    except OSError:
        return False
