"""How much one client may put into its session: bounds on memory, and on what a model must read.

Codes and messages are those with which OpenAI refuses a value that is too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from realtime.session.settings import SettingsPatch, Tool


@dataclass(frozen=True, slots=True)
class Bounds:
    """items: of the conversation. tool_characters: of all tools together, as JSON."""

    items: int = 5000
    instruction_characters: int = 100_000
    tools: int = 128
    tool_characters: int = 250_000


@dataclass(frozen=True, slots=True)
class Excess:
    """Why a value is refused, in the wire's words."""

    code: str
    message: str
    param: str


def find_excess(
    bounds: Bounds, instructions: str | None, tools: Sequence[Tool] | None, root: str
) -> Excess | None:
    """What is too much of a session's or a response's own values; None: nothing.

    root: the wire's name of the object that holds them.
    """
    length = len(instructions or "")
    if length > bounds.instruction_characters:
        return _too_long(f"{root}.instructions", bounds.instruction_characters, length)
    tools = tools or ()
    path = f"{root}.tools"
    if len(tools) > bounds.tools:
        return Excess(
            "array_above_max_length",
            f"Invalid '{path}': array too long. Expected an array with maximum length "
            f"{bounds.tools}, but got an array with length {len(tools)} instead.",
            path,
        )
    length = sum(len(tool.wire_json) for tool in tools)
    if length > bounds.tool_characters:
        return _too_long(path, bounds.tool_characters, length)
    return None


def find_excess_in_patch(bounds: Bounds, patch: SettingsPatch) -> Excess | None:
    """What is too much of a session's update."""
    given = dict(patch.values)
    instructions = cast("str | None", given.get("instructions"))
    tools = cast("tuple[Tool, ...] | None", given.get("tools"))
    return find_excess(bounds, instructions, tools, "session")


def _too_long(path: str, limit: int, length: int) -> Excess:
    return Excess(
        "string_above_max_length",
        f"Invalid '{path}': string too long. Expected a string with maximum length {limit}, but "
        f"got a string with length {length} instead.",
        path,
    )
