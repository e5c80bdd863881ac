"""How many requests of a kind are read and answered at once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from realtime.http.answers import error_response
from realtime.http.reception import Refused


class Room:
    """most: at once; beyond, clients are told to come back. what: in words, of those being served
    ("files are being transcribed")."""

    def __init__(self, most: int, what: str, retry_after_s: int) -> None:
        self._most = most
        self._what = what
        self._retry_after_s = retry_after_s
        self._taken = 0

    @contextmanager
    def place(self) -> Generator[None]:
        """Raises Refused, 429, while there is none."""
        if self._taken >= self._most:
            raise Refused(
                error_response(
                    429,
                    "too_many_requests",
                    f"{self._most} {self._what}, which is all that this server takes at once. Try "
                    "again in a moment.",
                    headers={"Retry-After": str(self._retry_after_s)},
                )
            )
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
