"""Keeps a model's reasoning out of its answer, where a server sends both as one text.

Reasoning models write `<think>...</think>` before they answer. Only what opens a text is taken
for reasoning: later on, the same words are something that the model says.
"""

from __future__ import annotations

from enum import Enum

_NAMES = ("think", "thinking", "thought", "reasoning")
OPENINGS = tuple(f"<{name}>" for name in _NAMES)
LONGEST_BLANK_CHARS = 64  # white space before a block; beyond it there is none to wait for


class _Place(Enum):
    BEFORE = "before"  # nothing but white space, and perhaps the beginning of a mark
    INSIDE = "inside"
    AFTER = "after"


class ReasoningFilter:
    """Feed pieces, get what is not reasoning; the result does not depend on where they were cut.

    Holds back some characters at most: never more than a mark, and the white space before it.
    """

    def __init__(self) -> None:
        self._place = _Place.BEFORE
        self._held = ""
        self._closing = ""
        self._has_skipped = False

    def feed(self, piece: str) -> str:
        if self._place is _Place.AFTER:
            return piece
        for read, char in enumerate(piece):
            self._held += char
            if self._place is _Place.INSIDE:
                self._read_inside()
            elif (text := self._read_before()) is not None:
                return text + piece[read + 1 :]
        return ""

    def finish(self) -> str:
        """No more comes: what was held back for a mark that never came whole."""
        held = self._held if self._place is _Place.BEFORE else ""
        self._held = ""
        self._place = _Place.AFTER
        return held

    def _read_inside(self) -> None:
        if self._held.endswith(self._closing):
            self._place = _Place.BEFORE
            self._has_skipped = True
            self._held = ""
        else:
            self._held = self._held[-len(self._closing) :]

    def _read_before(self) -> str | None:
        """What is held, once it is plain that it opens no block."""
        start = self._held.lstrip()
        if start in OPENINGS:
            self._place = _Place.INSIDE
            self._closing = f"</{start[1:]}"
            self._held = ""
            return None
        if self._has_skipped:
            self._held = start  # the blank lines behind a block belong to it
        is_open = any(opening.startswith(start) for opening in OPENINGS)
        if is_open and len(self._held) <= LONGEST_BLANK_CHARS:
            return None
        self._place = _Place.AFTER
        return self._held
