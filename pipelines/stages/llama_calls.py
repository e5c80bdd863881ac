"""Where a call begins in the text of a small model, however the text is cut.

These models print a call as a JSON object, `{"name": ..., "arguments": {...}}`, bare, in a fence or
in the tags of their template. From there on they need not be trusted: they are held to a grammar.
Other objects than calls have a name too, so one without tags is a call only of a known tool.
"""

from __future__ import annotations

import json
from collections.abc import Collection

NOT_A_CALL = "-"
_TAGS = ("<tool_call>", "<tools>", "<function_call>")
_FENCE = "```"
_NAMES = ('"name"', '"function"')  # the members of a call's object that name the tool
_OTHERS = ('"arguments"', '"parameters"')  # and those that may come before
_CLOSINGS = {"<tool_call>\n": "\n</tool_call>", "```json\n": "\n```", "": ""}


class CallWatch:
    """Passes plain text on; what may be the beginning of a call is held back, and a call swallowed.

    tools: the names that make a call of an object without tags.
    opening: what stands before the call's object, once a call has begun; until then None.
    """

    def __init__(self, tools: Collection[str]) -> None:
        self.opening: str | None = None
        # Beyond ASCII a name may be written in two ways.
        self._names = tuple(
            {
                json.dumps(tool, ensure_ascii=is_plain)
                for tool in tools
                for is_plain in (True, False)
            }
        )
        self._held = ""
        self._is_line_start = True  # only white space since the last line began

    def feed(self, text: str) -> str:
        """The text that is surely no call."""
        if self.opening is not None:
            return ""
        text, self._held = self._held + text, ""
        is_line_start = self._is_line_start
        for place, character in enumerate(text):
            begun = self._begins(text[place:], is_line_start) if character in "<`{" else NOT_A_CALL
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

    def _begins(self, text: str, is_line_start: bool) -> str | None:
        """The opening of the call that begins here; NOT_A_CALL, or None: that shows later."""
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
        if text and not text.startswith("{"):
            return NOT_A_CALL
        is_call = self._is_call(text)
        if is_call is None:
            return None
        return opening if is_call else NOT_A_CALL

    def _is_call(self, text: str) -> bool | None:
        """Whether an object names a known tool; None: that shows later.

        One of these models writes the doubled braces of its template.
        """
        text = text.removeprefix("{").removeprefix("{").lstrip()
        while True:
            key = _first_of(text, (*_NAMES, *_OTHERS))
            if not key:
                return False if key is None else None
            text = text.removeprefix(key).lstrip()
            if not text:
                return None
            if text[0] != ":":
                return False
            text = text[1:].lstrip()
            if key in _NAMES:
                break
            behind = _behind_object(text)
            if not behind:
                return False if behind is None else None
            if behind[0] != ",":
                return False
            text = behind[1:].lstrip()
        if text.startswith("{"):
            return self._is_call(text)
        name = _first_of(text, self._names)
        return None if name == "" else name is not None


def closing(opening: str) -> str:
    """What stands behind the object of a call that was opened so."""
    return _CLOSINGS[opening]


def _first_of(text: str, words: Collection[str]) -> str | None:
    """The word that a text begins with; "": perhaps one of them, None: none of them."""
    for word in words:
        if text.startswith(word):
            return word
    return "" if any(word.startswith(text) for word in words) else None


def _behind_object(text: str) -> str | None:
    """What stands behind the object that a text begins with; "": not yet known, None: no object."""
    if not text.startswith("{"):
        return None if text else ""
    depth = 0
    is_quoted = is_escaped = False
    for place, character in enumerate(text):
        if is_quoted:
            if not is_escaped and character == '"':
                is_quoted = False
            is_escaped = character == "\\" and not is_escaped
        elif character == '"':
            is_quoted = True
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                return text[place + 1 :].lstrip()
    return ""
