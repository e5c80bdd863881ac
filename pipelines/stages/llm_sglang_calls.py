"""Calls of tools in the text of a model that writes them as `<tool_call>{...}</tool_call>`.

Qwen's models and many others do, because their chat templates teach it. The text may be cut
anywhere. A call's arguments are passed on as they are written; what a model writes in the place of
a call and is none is neither said nor called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

from pipelines.stages.llm_sglang_json import ObjectEnd

OPENING = "<tool_call>"
CLOSING = "</tool_call>"

_STRING = r'"(?:[^"\\]|\\.)*"'
# The usual order of members: only then are arguments known to be those of a known tool.
_HEAD = re.compile(rf'\s*\{{\s*"name"\s*:\s*({_STRING})\s*,\s*"(?:arguments|parameters)"\s*:\s*\{{')

_MARK = re.compile(f"{OPENING}|{CLOSING}")


@dataclass(frozen=True, slots=True)
class Words:
    """Text that is no part of a call."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A piece of a call's arguments. name: of the tool, with the first piece of a call; else ""."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """A call is whole."""


Found = Words | CallPiece | CallEnd


class CallReader:
    """Splits a reply into words and calls. tools: the names of those that may be called."""

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = tools
        self._text = ""  # not told yet
        self._is_call = False  # whether the text is the inside of a call
        self._end: ObjectEnd | None = None  # of arguments that are being told
        self._is_told = False  # whether this call's arguments have been told to their end
        self._object = ObjectEnd()  # of the whole call
        self._looked = 0  # how much of the text it has seen

    @property
    def is_inside(self) -> bool:
        """Whether a call has begun and not ended."""
        return self._is_call

    def feed(self, text: str) -> list[Found]:
        self._text += text
        found: list[Found] = []
        while self._step(found):
            pass
        return found

    def rest(self) -> list[Found]:
        """What remains at the end of the reply. A call that broke off adds nothing."""
        found: list[Found] = []
        while self._is_call and CLOSING in self._text:
            # It stood in a string that never ended, so the call was none, and ended there.
            self._text = self._text.partition(CLOSING)[2]
            self._is_call = False
            found += self.feed("")
        text, self._text = self._text, ""
        if text and not self._is_call:
            found.append(Words(text))
        return found

    def _step(self, found: list[Found]) -> bool:
        """Take what can be told; whether there may be more."""
        if not self._is_call:
            return self._read_words(found)
        if self._end is not None:
            return self._read_arguments(found)
        return self._read_head(found)

    def _read_words(self, found: list[Found]) -> bool:
        words, opening, rest = self._text.partition(OPENING)
        if not opening:
            held = _overlap(words, OPENING)
            words, rest = words[: len(words) - held], words[len(words) - held :]
        if words:
            found.append(Words(words))
        self._text = rest
        self._is_call = bool(opening)
        self._object, self._looked = ObjectEnd(), 0
        return self._is_call

    def _read_head(self, found: list[Found]) -> bool:
        if self._is_told:
            return self._leave_call()
        head = _HEAD.match(self._text)
        name = _decoded(head[1]) if head else None
        if head and name in self._tools:
            found.append(CallPiece(cast("str", name), ""))
            self._text = self._text[head.end() - 1 :]
            self._end = ObjectEnd()
            return True
        place = self._find_closing()
        if place < 0:
            return False
        call = _call(self._text[:place])
        if call is not None and call[0] in self._tools:
            found += [CallPiece(*call), CallEnd()]
        self._text = self._text[place + len(CLOSING) :]
        self._is_call = False
        return True

    def _leave_call(self) -> bool:
        """Behind told arguments: up to the call's end, or to the next call if that is forgotten."""
        mark = _MARK.search(self._text)
        if mark is None:
            return False
        self._text = self._text[mark.end() if mark[0] == CLOSING else mark.start() :]
        self._is_call = self._is_told = False
        return True

    def _find_closing(self) -> int:
        """Where the call's closing mark begins; -1: it is not there. In a string it is text."""
        while True:
            place = self._text.find(CLOSING, self._looked)
            end = len(self._text) - _overlap(self._text, CLOSING) if place < 0 else place
            if not self._object.is_reached:
                self._object.feed(self._text[self._looked : end])
            self._looked = end
            if place < 0 or not self._object.is_in_text:
                return place
            self._object.feed(CLOSING)
            self._looked += len(CLOSING)

    def _read_arguments(self, found: list[Found]) -> bool:
        assert self._end is not None
        inside = self._end.feed(self._text)
        text, self._text = self._text[:inside], self._text[inside:]
        if text:
            found.append(CallPiece("", text))
        if not self._end.is_reached:
            return False
        found.append(CallEnd())
        self._end = None
        self._is_told = True
        return True


def _call(body: str) -> tuple[str, str] | None:
    """The name and the arguments of a whole call, in whichever order they stand."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    call = cast("dict[str, Any]", value)
    arguments = call.get("arguments", call.get("parameters", {}))
    if isinstance(arguments, str):
        return str(call.get("name")), arguments  # written as a JSON text inside the JSON
    if not isinstance(arguments, dict):
        return None
    return str(call.get("name")), json.dumps(arguments, ensure_ascii=False)


def _decoded(quoted: str) -> str | None:
    try:
        return json.loads(quoted)
    except ValueError:
        return None


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of a text may be the beginning of the mark."""
    longest = min(len(text), len(mark) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(mark[:n])), 0)
