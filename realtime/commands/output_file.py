"""Where a command writes to: whether it can, before there is anything to lose."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from realtime.commands.errors import USAGE, CommandError


def require_writable(out: Path, option: str, suffixes: Sequence[str]) -> None:
    """option: that named it. suffixes: one of which its name must end in. Raises CommandError."""
    problem = None
    if out.suffix.lower() not in suffixes:
        problem = f"its name must end in {' or '.join(suffixes)}"
    elif not os.path.isdir(out.parent):
        problem = f"there is no folder {out.parent}: make it first"
    elif os.path.isdir(out):
        problem = "it is a folder"
    elif not os.access(out if os.path.exists(out) else out.parent, os.W_OK):
        problem = "it may not be written by this user"
    if problem is not None:
        raise CommandError(f"{option} {out}: {problem}", USAGE)
