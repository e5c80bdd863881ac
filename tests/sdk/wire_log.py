"""What went over the wire in one scenario, both ways, in order."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

Event: TypeAlias = dict[str, Any]
Sender: TypeAlias = Literal["client", "server"]


@dataclass(frozen=True, slots=True)
class Entry:
    """kind: `http` for a request or an answer, `event` for a decoded JSON event."""

    connection: int
    sender: Sender
    kind: str
    data: Any


@dataclass(slots=True)
class WireLog:
    """path: also written there, a JSON line per entry, for people to read after a failure."""

    path: Path
    entries: list[Entry] = field(default_factory=list[Entry], repr=False)

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(entry)) + "\n")

    def events(self, sender: Sender, kind: str | None = None) -> list[Event]:
        return [
            entry.data
            for entry in self.entries
            if entry.kind == "event"
            and entry.sender == sender
            and kind in (None, entry.data["type"])
        ]

    def kinds(self, sender: Sender) -> list[str]:
        return [event["type"] for event in self.events(sender)]

    def last(self, kind: str) -> Event:
        """The last server event of a type. Raises IndexError if there was none."""
        return self.events("server", kind)[-1]

    def joined(self, kind: str) -> str:
        """The deltas of a type of server event."""
        return "".join(event["delta"] for event in self.events("server", kind))

    def by_connection(self) -> dict[int, list[Event]]:
        """The server's events of each connection."""
        found: dict[int, list[Event]] = {}
        for entry in self.entries:
            if entry.kind == "event" and entry.sender == "server":
                found.setdefault(entry.connection, []).append(entry.data)
        return found

    def http(self, sender: Sender) -> list[dict[str, Any]]:
        return [e.data for e in self.entries if e.kind == "http" and e.sender == sender]
