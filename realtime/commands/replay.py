"""`parley replay`: run a recorded session again and say whether it went the same way."""

from __future__ import annotations

from pathlib import Path

from realtime.commands.errors import FAILED, OK, CommandError
from realtime.runtime.replay import RecordDamaged, replay


def replay_record(path: Path) -> int:
    """Prints the first difference, if there is one."""
    try:
        report = replay(path)
    except RecordDamaged as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror or error}") from error
    print(report.describe())
    return OK if report.is_same else FAILED
