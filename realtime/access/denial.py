"""The answer to whoever may not come in."""

from __future__ import annotations


class Denied(Exception):
    """An HTTP status with a code and words for a person."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
