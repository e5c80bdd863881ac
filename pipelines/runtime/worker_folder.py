"""The folder of a worker's socket, for the seconds until the worker has found it."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

PREFIX = "parley-worker-"
# No worker connects so late: what is older was left by a server that was killed meanwhile.
LITTER_AGE_S = 3600.0


def make_socket_folder(now_s: float | None = None) -> str:
    """A new folder with mode 0700: nobody else gets in. Raises OSError.

    Old ones of this user are removed. now_s: unix time.
    """
    _sweep(time.time() if now_s is None else now_s)
    return tempfile.mkdtemp(prefix=PREFIX)


def _sweep(now_s: float) -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            found = folder.lstat()
        except OSError:
            continue  # its owner was quicker
        is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        if is_own and now_s - found.st_mtime > LITTER_AGE_S:
            shutil.rmtree(folder, ignore_errors=True)
