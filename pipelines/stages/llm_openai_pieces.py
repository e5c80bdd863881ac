"""The calls of a streamed answer, out of the pieces in which servers send them.

The protocol gives each call an index and, with its first piece, an id and a name. Servers give
several calls one index, leave ids out or repeat names, or write two calls at the same time. What
leaves here is one call after another: the first as it is written, the others at the end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, cast

from pipelines.text.characters import CharacterJoiner, whole_characters
from pipelines.types import ToolCallDelta

Piece = dict[str, Any]


@dataclass(slots=True)
class _Call:
    index: int  # the server's own
    call_id: str = ""
    name: str = ""
    written: str = ""  # of its arguments
    is_named_again: bool = False  # though whole: what is written next is another call's
    joiner: CharacterJoiner = field(default_factory=CharacterJoiner)

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are an object already, so that nothing can follow."""
        if not self.written.rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads(self.written), dict)
        except (ValueError, RecursionError):
            return False


@dataclass(slots=True)
class CallPieces:
    """Puts the calls of one answer together.

    alive: whether the last delta had any piece. held_chars: of arguments that wait for the end.
    """

    request_id: str
    alive: bool = False
    held_chars: int = 0
    _calls: list[_Call] = field(default_factory=list[_Call])

    def read(self, delta: Piece) -> list[ToolCallDelta]:
        """What leaves now of a delta's calls."""
        self.alive = False
        pieces = delta.get("tool_calls")
        told: list[ToolCallDelta] = []
        for place, piece in enumerate(cast("list[object]", pieces) if _is_list(pieces) else []):
            if isinstance(piece, dict):
                told += self._add(cast("Piece", piece), place)
        return told

    def rest(self, *, is_cut: bool) -> list[ToolCallDelta]:
        """What was held back, at the end of the answer. is_cut: the last call may not be whole.

        What never got a name is none; a call that takes nothing may have nothing written.
        """
        named = [call for call in self._calls if call.name]
        told: list[ToolCallDelta] = []
        for number, call in enumerate(named):
            is_whole = not is_cut or number < len(named) - 1
            missing = "{}" if is_whole and not call.written.strip() else ""
            if call is not self._calls[0]:
                told.append(ToolCallDelta(number, call.call_id, call.name, call.written + missing))
            elif missing:
                told.append(ToolCallDelta(0, "", "", missing))
        return told

    def _add(self, piece: Piece, place: int) -> list[ToolCallDelta]:
        function = piece.get("function")
        function = cast("Piece", function) if isinstance(function, dict) else {}
        call_id, name = _text(piece.get("id")), _text(function.get("name"))
        arguments: object = function.get("arguments")
        if isinstance(arguments, dict):  # some servers send the object instead of its text
            arguments = json.dumps(arguments)
        arguments = arguments if isinstance(arguments, str) else ""
        if not (call_id or name or arguments):
            return []
        self.alive = True
        index = piece.get("index")
        call = self._call_of(index if isinstance(index, int) else place, call_id, name, arguments)
        is_new = not call.name and bool(name)
        call.name = call.name or name
        arguments = call.joiner.feed(arguments)
        call.written += arguments
        if call is not self._calls[0] or not call.name:
            self.held_chars += len(arguments)
            return []
        if is_new:
            return [ToolCallDelta(0, call.call_id, call.name, call.written)]
        return [ToolCallDelta(0, "", "", arguments)] if arguments else []

    def _call_of(self, index: int, call_id: str, name: str, arguments: str) -> _Call:
        """The call that a piece belongs to: the last one of its index, or a new one."""
        known = [call for call in self._calls if call.index == index]
        same = [call for call in known if call_id and call.call_id == call_id]
        if not known:
            return self._begin(index, call_id, "")
        last = known[-1]
        if not arguments.strip():
            if name and last.name and (name != last.name or (call_id and not same)):
                return self._begin(index, call_id, "")
            last.is_named_again |= bool(name) and last.is_whole
            return last
        if not name:
            if last.is_named_again:
                return self._begin(index, call_id, last.name)
            return same[-1] if same else last
        is_other = name != last.name or (bool(call_id) and not same)
        if last.name and (is_other or last.is_whole):
            return self._begin(index, call_id, "")
        return last

    def _begin(self, index: int, call_id: str, name: str) -> _Call:
        if not call_id or any(call.call_id == call_id for call in self._calls):
            call_id = f"call_{self.request_id}_{len(self._calls)}"
        self._calls.append(_Call(index, call_id, name))
        return self._calls[-1]


def _text(value: object) -> str:
    return whole_characters(value) if isinstance(value, str) else ""


def _is_list(value: object) -> bool:
    return isinstance(value, list)
