"""The voice that a session asks for, where it is one that was uploaded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from pipelines.ports import Cascade
from pipelines.types import VoiceSample

log = logging.getLogger(__name__)

_DEADLINE_S = 2.0  # a caller rather hears the default voice than waits longer for a disk


class VoiceLookup:
    """find: of an uploaded voice, by its name; blocking. Its failures are the log's business:
    a conversation goes on, in the default voice."""

    def __init__(self, cascade: Cascade, find: Callable[[str], VoiceSample | None]) -> None:
        self._cascade = cascade
        self._find = find

    async def find(self, name: str) -> VoiceSample | None:
        """None: the stage's own voice is meant, or one that nobody knows."""
        if not self._cascade.copies_voices or name in self._cascade.voices:
            return None
        try:
            async with asyncio.timeout(_DEADLINE_S):
                return await asyncio.to_thread(self._find, name)
        except Exception as error:
            log.warning("the voice %.80r cannot be looked up: %r", name, error)
            return None
