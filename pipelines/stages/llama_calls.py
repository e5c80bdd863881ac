"""Where a call begins in the text of a small model, however the text is cut.

These models print a call as a JSON object, `{"name": ..., "arguments": {...}}`, bare, in a fence or
in the tags of their template. From there on they need not be trusted: they are held to a grammar.
"""

from __future__ import annotations

NOT_A_CALL = "-"
_TAGS = ("<tool_call>", "<tools>", "<function_call>")
_FENCE = "```"
_KEYS = ('"name"', '"function"', '"arguments"', '"parameters"')  # how the object of a call begins
_CLOSINGS = {"<tool_call>\n": "\n</tool_call>", "```json\n": "\n```", "": ""}


class CallWatch:
    """Passes plain text on; what may be the beginning of a call is held back, and a call swallowed.

    opening: what stands before the call's object, once a call has begun; until then None.
    """

    def __init__(self) -> None:
        self.opening: str | None = None
        self._held = ""
        self._is_line_start = True  # only white space since the last line began

    def feed(self, text: str) -> str:
        """The text that is surely no call."""
        if self.opening is not None:
            return ""
        text, self._held = self._held + text, ""
        is_line_start = self._is_line_start
        for place, character in enumerate(text):
            begun = _begins(text[place:], is_line_start)
            if begun != NOT_A_CALL:
                self._is_line_start = is_line_start
                self.opening = begun
                self._held = text[place:] if begun is None else ""
                return text[:place]
            is_line_start = character == "\n" or (is_line_start and character.isspace())
        self._is_line_start = is_line_start
        return text

    def rest(self) -> str:
        """What was held back at the end of the text, and is no call."""
        held, self._held = self._held, ""
        return held


def closing(opening: str) -> str:
    """What stands behind the object of a call that was opened so."""
    return _CLOSINGS[opening]


def _begins(text: str, is_line_start: bool) -> str | None:
    """The opening of the call that `text` begins with; NOT_A_CALL, or None: that shows later."""
    if text.startswith(_TAGS):
        return "<tool_call>\n"
    if any(tag.startswith(text) for tag in _TAGS):
        return None
    if not is_line_start or text[0] not in "`{":
        return NOT_A_CALL
    opening = ""
    if text[0] == "`":
        if _FENCE.startswith(text):
            return None
        if not text.startswith(_FENCE):
            return NOT_A_CALL
        text = text.removeprefix(_FENCE)
        if "json".startswith(text):
            return None
        text = text.removeprefix("json").lstrip()
        opening = "```json\n"
    return _opens_object(text, opening)


def _opens_object(text: str, opening: str) -> str | None:
    """One of these models writes the doubled braces of its template."""
    if text and not text.startswith("{"):
        return NOT_A_CALL
    text = text.removeprefix("{").removeprefix("{").lstrip()
    if not text:
        return None
    for key in _KEYS:
        if key.startswith(text):
            return None
        if text.startswith(key):
            rest = text.removeprefix(key).lstrip()
            if not rest:
                return None
            return opening if rest.startswith(":") else NOT_A_CALL
    return NOT_A_CALL
