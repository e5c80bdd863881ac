"""How much one client may put into its session: bounds on memory, and on what a model must read.

Codes and messages are those with which OpenAI refuses a value that is too long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from realtime.session.settings import ECHOED, SessionSettings, SettingsPatch, Tool

# Where the wire has fields whose patches bear other names.
_PATHS = {"transcription": "audio.input.transcription"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """items: of the conversation. tool_characters: of all tools together, as JSON.

    echoed_characters: of all text that is only kept and sent back, whichever fields hold it.
    """

    items: int = 5000
    instruction_characters: int = 100_000
    tools: int = 128
    tool_characters: int = 250_000
    echoed_characters: int = 65_536


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


def find_excess_in_update(
    bounds: Bounds, patch: SettingsPatch, settings: SessionSettings
) -> Excess | None:
    """What is too much of a session's update. settings: what they would be with it."""
    given = dict(patch.values)
    instructions = cast("str | None", given.get("instructions"))
    tools = cast("tuple[Tool, ...] | None", given.get("tools"))
    excess = find_excess(bounds, instructions, tools, "session")
    return excess or _find_echoed_excess(bounds, given, settings)


def _find_echoed_excess(
    bounds: Bounds, given: Mapping[str, object], settings: SessionSettings
) -> Excess | None:
    """Updates add up: a session is sent back whole, with what all of them have set."""
    lengths = _echoed_lengths(settings)
    length = sum(lengths.values())
    if length <= bounds.echoed_characters:
        return None
    changed = [name for name in given if name in lengths]
    path = "session"
    if len(changed) == 1:
        path += f".{_PATHS.get(changed[0], changed[0].removeprefix(ECHOED))}"
    return Excess(
        "invalid_value",
        f"Invalid '{path}': a session keeps at most {bounds.echoed_characters} characters of text "
        f"such as tracing, reasoning, transcription and include, all together, but this would make "
        f"it {length}. Shorten them, or clear what is no longer needed.",
        path,
    )


def _echoed_lengths(settings: SessionSettings) -> dict[str, int]:
    """By the names that patches have for the fields."""
    heard = settings.transcription
    texts = () if heard is None else (heard.model, heard.language, heard.prompt, heard.extra_json)
    return {
        "transcription": sum(len(text or "") for text in texts),
        "tool_choice": len(settings.tool_choice.name or ""),
        **{f"{ECHOED}{name}": len(text) for name, text in settings.echoed_json},
    }


def _too_long(path: str, limit: int, length: int) -> Excess:
    return Excess(
        "string_above_max_length",
        f"Invalid '{path}': string too long. Expected a string with maximum length {limit}, but "
        f"got a string with length {length} instead.",
        path,
    )
