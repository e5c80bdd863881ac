"""What the Python drivers have in common: reading scenarios, filling in values, telling events.

A scenario is data: where to connect, and steps. A step is one of
    {"send": EVENT}      a client event; a string "$TYPE:PATH" in it stands for a value of the last
                         server event of that type, such as "$response.created:response.id"
    {"audio": BASE64}    the microphone's next sound
    {"until": [TYPE]}    read server events until each of these types has come
    {"pause_ms": N}
and, for SDKs that hold the conversation themselves,
    {"message": TEXT}    the user types
    {"interrupt": true}  the application stops the agent
A driver prints JSON lines: every server event as the SDK gave it, everything that the SDK said of
its own, and how each scenario ended.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

SCENARIO_TIMEOUT_S = 30.0


def read_scenarios() -> list[dict[str, Any]]:
    with open(sys.argv[1]) as file:
        return json.load(file)


class Story:
    """One scenario under way."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.steps: list[dict[str, Any]] = scenario["steps"]
        self._name = scenario["name"]
        self._latest: dict[str, Any] = {}

    def saw(self, event: dict[str, Any]) -> None:
        """A server event that the SDK handed over."""
        self._latest[event["type"]] = event
        self.tell(event=event)

    def tell(self, **what: Any) -> None:
        sys.stdout.write(json.dumps({"scenario": self._name, **what}) + "\n")
        sys.stdout.flush()

    def failed(self) -> None:
        """Called while the exception is handled."""
        self.tell(failed=traceback.format_exc())

    def filled(self, value: Any) -> Any:
        """`value` with every "$TYPE:PATH" replaced."""
        if isinstance(value, dict):
            return {key: self.filled(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self.filled(entry) for entry in value]
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        kind, _, path = value[1:].partition(":")
        found = self._latest[kind]
        for name in path.split("."):
            found = found[name]
        return found
