"""What a client has written and the voice has not taken yet, in order, request after request."""

from __future__ import annotations

import asyncio
from collections import deque
from enum import Enum, auto
from typing import TypeAlias

from realtime.http.speech_socket.setup import Setup

# More than an hour of speech: a client that is so far ahead is not read until the voice has caught
# up, and up to there its `input.cancel` is heard at once.
WAITING_CHARACTERS = 2**16
PIECE_CHARACTERS = 1024  # handed to the voice at a time: a minute of speech


class Mark(Enum):
    FLUSH = auto()
    DONE = auto()  # the end of one request's text


Entry: TypeAlias = str | Mark | Setup


class Script:
    """A bounded queue: one task writes, another takes."""

    def __init__(self, waiting_characters: int = WAITING_CHARACTERS) -> None:
        self._most = waiting_characters
        self._entries: deque[Entry] = deque()
        self._size = 0
        self._is_skipping = False
        self._changed = asyncio.Event()
        self.is_writing = False  # text has come, and its end has not

    @property
    def has_text(self) -> bool:
        """Whether any of a request waits."""
        return any(not isinstance(entry, Setup) for entry in self._entries)

    # ---- the side of the client --------------------------------------------------------------

    async def write(self, text: str) -> None:
        """Waits while there is enough; text of any length is taken when nothing else waits."""
        if not text:
            return
        self.is_writing = True
        await self._room(len(text))
        if not self._is_skipping:
            for start in range(0, len(text), PIECE_CHARACTERS):
                self._append(text[start : start + PIECE_CHARACTERS])

    async def flush(self) -> None:
        """Of a text that has begun; a second one in a row changes nothing."""
        if not self.is_writing or (self._entries and self._entries[-1] is Mark.FLUSH):
            return
        await self._room(1)
        if not self._is_skipping:
            self._append(Mark.FLUSH)

    async def end(self) -> None:
        """The request's text is whole."""
        await self._room(1)
        self.is_writing = False
        if self._is_skipping:
            self._is_skipping = False
        else:
            self._append(Mark.DONE)

    async def configure(self, setup: Setup) -> None:
        """How the requests sound that begin after this. Not while one is written."""
        await self._room(1)
        self._append(setup)

    def clear(self) -> None:
        """Forget every text; a configuration stays."""
        self._is_skipping = self.is_writing = False
        kept = [entry for entry in self._entries if isinstance(entry, Setup)]
        self._entries.clear()
        self._entries.extend(kept)
        self._size = len(kept)

    # ---- the side of the voice ---------------------------------------------------------------

    async def take(self) -> Entry:
        """The next entry; short texts in a row come as one."""
        while not self._entries:
            self._changed.clear()
            await self._changed.wait()
        first = self._pop()
        if isinstance(first, str):
            first = "".join(self._more(first))
        self._changed.set()
        return first

    def skip(self) -> None:
        """Forget the rest of the request that is being taken, also what will come of it."""
        while self._entries:
            if self._pop() is Mark.DONE:
                break
        else:
            self._is_skipping = True
        self._changed.set()

    def _more(self, first: str) -> list[str]:
        pieces, size = [first], len(first)
        while self._entries:
            following = self._entries[0]
            if not isinstance(following, str) or size + len(following) > PIECE_CHARACTERS:
                break
            self._pop()
            pieces.append(following)
            size += len(following)
        return pieces

    async def _room(self, size: int) -> None:
        while self._entries and self._size + size > self._most:
            self._changed.clear()
            await self._changed.wait()

    def _append(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._size += _weigh(entry)
        self._changed.set()

    def _pop(self) -> Entry:
        entry = self._entries.popleft()
        self._size -= _weigh(entry)
        return entry


def _weigh(entry: Entry) -> int:
    """A mark counts as a character."""
    return len(entry) if isinstance(entry, str) else 1
