"""A request's ticket: how urgent it is, and whether anybody still wants it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from pipelines.types import Urgency


class StageRequest(Protocol):
    """What the runtime reads of a request."""

    @property
    def request_id(self) -> str: ...

    @property
    def urgency(self) -> Urgency: ...


class Aborted(Exception):
    """Raised inside stage code whose request is dead; never leaves the runtime."""


class Ticket:
    """Identity, urgency and tombstone of one request. Every method is safe in any thread."""

    def __init__(self, request_id: str, urgency: Urgency) -> None:
        self.request_id = request_id
        self.urgency = urgency  # read whenever somebody is chosen, so a change re-sorts
        self.aborted_at_s: float | None = None  # on time.monotonic()
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._on_hurry: list[Callable[[Urgency], object]] = []
        self._next_key = 0

    @classmethod
    def of(cls, request: StageRequest) -> Ticket:
        return cls(request.request_id, request.urgency)

    @property
    def aborted(self) -> bool:
        return self.aborted_at_s is not None

    def abort(self) -> None:
        """Mark the request as dead, then call the callbacks, in this thread. Idempotent."""
        with self._lock:
            if self.aborted_at_s is not None:
                return
            self.aborted_at_s = time.monotonic()
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback()

    def hurry(self, urgency: Urgency) -> None:
        """Change the class, then tell those who asked, in this thread."""
        self.urgency = urgency
        for callback in list(self._on_hurry):
            callback(urgency)

    def on_hurry(self, callback: Callable[[Urgency], object]) -> None:
        """Call `callback` at every change of class, for work that the request has elsewhere."""
        self._on_hurry.append(callback)

    def check(self) -> None:
        """Raise `Aborted` if the request is dead."""
        if self.aborted:
            raise Aborted(self.request_id)

    def on_abort(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call `callback` once at the abort, at once if that was before; it must not block.

        The result takes the callback back; doing so twice or too late is harmless.
        """
        with self._lock:
            if self.aborted_at_s is None:
                key = self._next_key
                self._next_key += 1
                self._callbacks[key] = callback
                return lambda: self._forget(key)
        callback()
        return lambda: None

    def _forget(self, key: int) -> None:
        with self._lock:
            self._callbacks.pop(key, None)
