"""The one thing that a session asks of its socket. `transports/` has the leaves."""

from __future__ import annotations

from typing import Protocol


class TransportClosed(Exception):
    """The other end is gone."""


class Transport(Protocol):
    """Text frames in order, both ways. `receive` and `send` may run at the same time."""

    @property
    def client_close_code(self) -> int | None:
        """What the client closed with; None while it has not, and when it was lost without."""
        ...

    async def receive(self) -> str | bytes | None:
        """The next frame; None once the client has gone or `close` was called."""
        ...

    async def send(self, text: str) -> None:
        """Returns when the frame was handed on. Raises TransportClosed (or OSError) when it cannot.

        Waits while the client does not read: that is how a stall is seen.
        """
        ...

    async def close(self, code: int, reason: str) -> None:
        """End the connection. Idempotent; raises nothing."""
        ...
