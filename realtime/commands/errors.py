"""How a command ends when the user can mend the cause."""

from __future__ import annotations

OK = 0
FAILED = 1  # the command ran and something is wrong
USAGE = 2  # the arguments or the configuration are wrong; argparse uses the same number


class CommandError(Exception):
    """Ends a command with its message, without a traceback. A line per thing that is wrong."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
