"""How a small local model is told of its tools, and of the calls that it has made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pipelines.types import Message, ToolSpec


def offered(tools: Sequence[ToolSpec], tool_choice: str) -> tuple[ToolSpec, ...]:
    """The tools that `tool_choice` (auto, none, required, or a name) leaves."""
    match tool_choice:
        case "none":
            return ()
        case "auto" | "required":
            return tuple(tools)
        case name:
            return tuple(tool for tool in tools if tool.name == name)


def answered(messages: Sequence[Message]) -> set[tuple[str, str]]:
    """The calls since the user last spoke whose results are there: names and plain arguments."""
    results = {message.call_id for message in messages if message.role == "tool"}
    found: set[tuple[str, str]] = set()
    for message in reversed(messages):
        if message.role == "user":
            break
        found |= {
            (call.name, plain(call.arguments))
            for call in message.tool_calls
            if call.call_id in results
        }
    return found


def rounds(messages: Sequence[Message]) -> int:
    """How often the model has called since the user last spoke, be it one tool or several."""
    count = 0
    for message in reversed(messages):
        if message.role == "user":
            break
        count += bool(message.tool_calls)
    return count


def plain(arguments: str) -> str:
    """One form for all JSON texts of one value; what is no JSON stays as it is."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except ValueError:
        return arguments


def as_openai(tool: ToolSpec) -> dict[str, Any]:
    """The form that chat templates expect. Raises ValueError for a schema that is no JSON."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": json.loads(tool.parameters_json),
    }
    return {"type": "function", "function": function}


def message_as_openai(message: Message) -> dict[str, Any]:
    """One message in the form that chat templates expect."""
    entry: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        entry["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.call_id is not None:
        entry["tool_call_id"] = message.call_id
    return entry


def instructions(tools: Sequence[ToolSpec]) -> str:
    """How to call tools, for models whose template does not say it."""
    listed = "\n".join(json.dumps(as_openai(tool)["function"]) for tool in tools)
    return (
        "You may call one of these functions:\n"
        f"{listed}\n"
        'To call one, answer only with {"name": <its name>, "arguments": <a JSON object>}.'
    )
