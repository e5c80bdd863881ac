"""The way of a request's inputs from the loop to the thread that takes them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from pipelines.runtime.handover import hand_over

In = TypeVar("In")


class Inbox(Generic[In]):
    """A bounded queue: `put` and `finish` on the loop, `take` and `shut` in any thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: deque[In] = deque()
        self._finished = False
        self._shut = False
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def accepts(self) -> bool:
        """Whether more may come."""
        return not (self._finished or self._shut)

    @property
    def finished(self) -> bool:
        """Whether nothing more comes; what is here is still to be taken."""
        return self._finished

    @property
    def full(self) -> bool:
        return len(self._items) >= self._limit

    async def put(self, item: In) -> bool:
        """Wait for room; False if the request has ended meanwhile."""
        while self.full and self.accepts:
            self._changed.clear()
            # A thread may have made room before the flag was cleared.
            if self.full and self.accepts:
                await self._changed.wait()
        if not self.accepts:
            return False
        self._items.append(item)
        return True

    def finish(self) -> None:
        self._finished = True
        self._changed.set()

    def take(self) -> In:
        """The oldest item. Raises IndexError if there is none."""
        item = self._items.popleft()
        hand_over(self._loop, self._changed.set)
        return item

    def take_all(self) -> list[In]:
        # One by one, because more may come meanwhile.
        items = [self._items.popleft() for _ in range(len(self._items))]
        hand_over(self._loop, self._changed.set)
        return items

    def shut(self) -> None:
        """The request is over: nothing is taken any more, and nobody waits."""
        self._shut = True
        hand_over(self._loop, self._changed.set)
