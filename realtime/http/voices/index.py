"""Uploaded voices as routes look for them: where the disk fails, the answer is at hand."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.types import VoiceSample
from realtime.http.reception import refuse
from realtime.voices.shelf import ShelfBroken, VoiceShelf

log = logging.getLogger(__name__)


class VoiceIndex:
    """Blocking; from any thread. Every method raises Refused: 503."""

    def __init__(self, shelf: VoiceShelf) -> None:
        self._shelf = shelf

    def find(self, name: str) -> VoiceSample | None:
        with refusing_broken_shelves():
            return self._shelf.find(name)

    def names(self) -> list[str]:
        """In order."""
        with refusing_broken_shelves():
            return [record.name for record in self._shelf.list()]


@contextmanager
def refusing_broken_shelves() -> Iterator[None]:
    """The cause and its paths are for the log; users learn that it is not their fault."""
    try:
        yield
    except ShelfBroken as broken:
        log.error("%s", broken)
        why = "Uploaded voices cannot be used at present; this server's log has the cause."
        raise refuse(503, "voices_unavailable", why, "voice") from broken
