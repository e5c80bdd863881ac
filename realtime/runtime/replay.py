"""Steps a fresh machine through a record and compares what it does, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from realtime.runtime.codec import Unreadable, decode, encode
from realtime.runtime.conversation import Conversation
from realtime.runtime.recorder import FORMAT
from realtime.session.effects import Effect
from realtime.session.machine import Machine


class RecordDamaged(Exception):
    """The file is no record, or something in its middle cannot be read."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the machine did something else. Texts are JSON."""

    line: int
    event: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """events: how many were stepped. is_truncated: the last line is incomplete, as after a kill."""

    path: Path
    events: int
    is_truncated: bool
    difference: Difference | None

    @property
    def is_same(self) -> bool:
        return self.difference is None

    def describe(self) -> str:
        """Some lines for a person."""
        ending = ", the last line is incomplete and was left out" if self.is_truncated else ""
        if self.difference is None:
            return f"{self.path}: {self.events} events, the same effects{ending}"
        at = self.difference
        return (
            f"{self.path}, line {at.line}: the effects differ{ending}\n"
            f"  event:    {at.event}\n  expected: {at.expected}\n  got:      {at.got}"
        )


def replay(path: Path, make: Callable[[], Conversation] = Machine) -> ReplayReport:
    """Stops at the first difference. Raises RecordDamaged, or OSError if there is no file."""
    machine = make()
    events, difference = 0, None
    lines = _Lines(path)
    for number, body in lines:
        try:
            now_ms, event, expected = body["now_ms"], decode(body["event"]), body["effects"]
        except (KeyError, TypeError, Unreadable) as error:
            raise RecordDamaged(f"{path}, line {number}: not an event: {error}") from error
        got = _plain(machine.step(event, now_ms))
        events += 1
        if got != expected:
            difference = Difference(number, _text(body["event"]), *_first_difference(expected, got))
            break
    return ReplayReport(path, events, lines.is_truncated, difference)


class _Lines:
    """(line number, body) of every event. `is_truncated` holds once they are all read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_truncated = False

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        if not self._path.stat().st_size:
            raise RecordDamaged(f"{self._path} is empty")
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                is_whole = line.endswith(b"\n")
                try:
                    body = json.loads(line)
                except ValueError as error:
                    if not is_whole and number > 1:
                        self.is_truncated = True
                        return
                    raise RecordDamaged(f"{self._path}, line {number}: {error}") from error
                if number == 1:
                    self._check_head(body)
                elif not is_whole:
                    self.is_truncated = True
                    return
                elif not isinstance(body, dict):
                    raise RecordDamaged(f"{self._path}, line {number}: not an event")
                else:
                    yield number, cast("dict[str, Any]", body)

    def _check_head(self, body: Any) -> None:
        if not isinstance(body, dict) or "record" not in body:
            raise RecordDamaged(f"{self._path} is not a record of a session")
        version = cast("dict[str, Any]", body)["record"]
        if version != FORMAT:
            raise RecordDamaged(
                f"{self._path} is a record of format {version}; this version reads {FORMAT}"
            )


def _plain(effects: list[Effect]) -> list[Any]:
    """As the record has them: through JSON, so that both sides are of the same types."""
    return json.loads(json.dumps([encode(effect) for effect in effects]))


def _first_difference(expected: Any, got: list[Any]) -> tuple[str, str]:
    """The first effect that is not the same, on either side."""
    wanted = cast("list[Any]", expected) if isinstance(expected, list) else [expected]
    for index in range(max(len(wanted), len(got))):
        one = wanted[index] if index < len(wanted) else None
        other = got[index] if index < len(got) else None
        if one != other:
            return _text(one), _text(other)
    return _text(wanted), _text(got)


def _text(body: Any) -> str:
    return "nothing" if body is None else json.dumps(body, ensure_ascii=False)
