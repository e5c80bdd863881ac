"""Where a JSON object ends in a text that is still being written."""

from __future__ import annotations


class ObjectEnd:
    """Follows one object from its opening brace to its closing one."""

    def __init__(self) -> None:
        self.is_reached = False
        self._depth = 0
        self._is_quoted = False
        self._is_escaped = False

    @property
    def is_in_text(self) -> bool:
        """Whether what comes next is inside a string of the object."""
        return self._is_quoted and self._depth > 0

    def feed(self, text: str) -> int:
        """How many characters of the next piece of text are inside the object."""
        for place, character in enumerate(text):
            if self._is_escaped:
                self._is_escaped = False
            elif self._is_quoted:
                self._is_escaped = character == "\\"
                self._is_quoted = character != '"'
            elif character == '"':
                self._is_quoted = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth == 0:
                    self.is_reached = True
                    return place + 1
        return len(text)
