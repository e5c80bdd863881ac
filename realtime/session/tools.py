"""Calls that wait for the client's output. A call without one never blocks anything."""

from __future__ import annotations

from realtime.session.settings import Tool, ToolChoice, ToolMode


def unknown_tool(choice: ToolChoice, tools: tuple[Tool, ...]) -> str | None:
    """Why this choice cannot be made among these tools; None: it can."""
    if choice.mode is not ToolMode.FUNCTION or choice.name in {tool.name for tool in tools}:
        return None
    known = ", ".join(f"'{tool.name}'" for tool in tools) or "none"
    return (
        f"Tool choice '{choice.name}' not found in 'tools'. The tools are: {known}. Declare the "
        "function, or choose another."
    )


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
