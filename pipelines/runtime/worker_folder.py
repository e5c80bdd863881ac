"""The folder of a worker's socket, for the seconds until the worker has found it."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

PREFIX = "parley-worker-"
ATTEMPTS = 10  # each is lost only to another server that sweeps in that very moment


class SocketFolder:
    """A new folder with mode 0700: nobody else gets in.

    It is locked while its server lives, whatever ends that: what nobody locks was left by one that
    was killed, and is removed.
    """

    def __init__(self) -> None:
        """Raises OSError."""
        _sweep()
        for _ in range(ATTEMPTS):
            self.path = tempfile.mkdtemp(prefix=PREFIX)
            lock = _lock(self.path)
            if lock is not None and os.path.exists(self.path):
                self._lock = lock
                return
            if lock is not None:
                os.close(lock)
        raise OSError(f"{self.path} was taken away by another process")

    def remove(self) -> None:
        """Call it once."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _sweep() -> None:
    """Remove what servers of this user have left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            found = folder.lstat()
            is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
            lock = _lock(str(folder)) if is_own else None
        except OSError:
            continue  # its owner was quicker
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock(folder: str) -> int | None:
    """A descriptor that holds the folder's lock until it is closed; None if another has it, or
    has removed the folder. Raises OSError."""
    import fcntl  # not on Windows, where this module is imported all the same

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
