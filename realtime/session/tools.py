"""Calls that wait for the client's output. A call without one never blocks anything."""

from __future__ import annotations

from realtime.session.settings import Tool, ToolChoice, ToolMode

_MOST_NAMED = 8  # tools in a message, for people to read
_EXCERPT_CHARACTERS = 80  # of a name: enough to recognise it


def unknown_tool(choice: ToolChoice, tools: tuple[Tool, ...]) -> str | None:
    """Why this choice cannot be made among these tools; None: it can."""
    if choice.mode is not ToolMode.FUNCTION or choice.name in {tool.name for tool in tools}:
        return None
    known = ", ".join(_quoted(tool.name) for tool in tools[:_MOST_NAMED]) or "none"
    if len(tools) > _MOST_NAMED:
        known += f", and {len(tools) - _MOST_NAMED} more"
    return (
        f"Tool choice {_quoted(choice.name or '')} not found in 'tools'. The tools are: {known}. "
        "Declare the function, or choose another."
    )


def _quoted(name: str) -> str:
    is_short = len(name) <= _EXCERPT_CHARACTERS
    return f"'{name}'" if is_short else f"'{name[:_EXCERPT_CHARACTERS]}...'"


class Tools:
    """The calls, by id, that the idle timer waits for."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending: set[str] = set()

    @property
    def is_waiting(self) -> bool:
        return bool(self._pending)

    def expect(self, call_id: str) -> None:
        self._pending.add(call_id)

    def give_up(self, call_id: str) -> None:
        """Wait no longer: the output is there, or may still come and counts."""
        self._pending.discard(call_id)

    def forget(self) -> None:
        self._pending.clear()
