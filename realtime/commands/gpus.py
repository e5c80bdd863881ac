"""Looks for the GPUs of a configuration before gigabytes are fetched for them.

`python -m realtime.commands.gpus CONFIG`: for the Makefile, ahead of the packages.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.types import StageError
from realtime.commands.errors import CommandError
from realtime.settings import Settings
from realtime.settings_file import SettingsError, load_settings
from realtime.stage_checks import check_gpus, sees_gpus

NO_GPU = "no GPU is seen here; what is fetched can be used where one is"


def require_gpus(settings: Settings) -> None:
    """Raises CommandError that names every claim on a GPU which cannot be met here."""
    try:
        check_gpus(settings.stages)
    except StageError as error:
        raise CommandError(error.message) from error


def note_gpus(settings: Settings) -> None:
    """Prints what keeps a configuration from being served here, for who may serve it elsewhere."""
    try:
        check_gpus(settings.stages)
    except StageError as error:
        for line in error.message.splitlines() if sees_gpus() else [NO_GPU]:
            print(f"note: {line}", flush=True)


def main() -> None:
    try:
        require_gpus(load_settings(Path(sys.argv[1])))
    except (CommandError, SettingsError) as error:
        sys.exit(f"parley: {error}")


if __name__ == "__main__":
    main()
