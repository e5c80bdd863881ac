"""A cache of what is dear to make: bounded in items and bytes, made once for all who ask."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class CacheLimits:
    items: int
    total_bytes: int


class ReferenceCache(Generic[Key, Value]):
    """Values by key; those used longest ago go first. Any thread may call it.

    Whoever asks for a value that another is making waits for that one; if the making fails, all of
    them get its error and nothing is kept. A value larger than all the cache may hold is handed on
    and not kept.
    """

    def __init__(self, limits: CacheLimits, size_bytes: Callable[[Value], int]) -> None:
        self._limits = limits
        self._size_bytes = size_bytes
        self._lock = threading.Lock()
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._making: dict[Key, Future[Value]] = {}
        self._total_bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    @property
    def total_bytes(self) -> int:
        return self._total_bytes

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of that key, made now if there is none. Raises what `make` raises."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
            mine = Future[Value]()
            promise = self._making.setdefault(key, mine)
        if promise is mine:
            return self._make(key, make, mine)
        return promise.result()

    def _make(self, key: Key, make: Callable[[], Value], promise: Future[Value]) -> Value:
        try:
            value = make()
        except BaseException as error:
            with self._lock:
                del self._making[key]
            promise.set_exception(error)
            raise
        with self._lock:
            del self._making[key]
            self._keep(key, value)
        promise.set_result(value)
        return value

    def _keep(self, key: Key, value: Value) -> None:
        size = self._size_bytes(value)
        if size > self._limits.total_bytes or self._limits.items < 1:
            return
        self._values[key] = (value, size)
        self._total_bytes += size
        while len(self) > self._limits.items or self._total_bytes > self._limits.total_bytes:
            _, (_, freed) = self._values.popitem(last=False)
            self._total_bytes -= freed
