"""Tool calls of a small local model: how it is told, how it is held to one, how one is read.

These models print a call as a JSON object in their text, `{"name": ..., "arguments": {...}}`, with
or without the tags of their template around it.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.types import Message, ToolSpec

OPENERS = ("{", "<tool_call>", "```json")  # how a reply that is a call begins


@dataclass(frozen=True, slots=True)
class Call:
    call_id: str
    name: str
    arguments: str  # a JSON text


def offered(tools: Sequence[ToolSpec], tool_choice: str) -> tuple[ToolSpec, ...]:
    """The tools that `tool_choice` (auto, none, required, or a name) leaves."""
    match tool_choice:
        case "none":
            return ()
        case "auto" | "required":
            return tuple(tools)
        case name:
            return tuple(tool for tool in tools if tool.name == name)


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


def schema_of_call(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """JSON Schema of a call of one of `tools`. Raises ValueError for a schema that is no JSON."""
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"const": tool.name},
                "arguments": json.loads(tool.parameters_json),
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


class CallReader:
    """Holds text back while it may be a call. `feed` and `finish` return what is plain text."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._names = frozenset(tool.name for tool in tools)
        self._held = ""
        self._decided_text = not tools

    def feed(self, text: str) -> str:
        if self._decided_text:
            return text
        self._held += text
        begun = self._held.lstrip()
        if any(begun.startswith(o) or o.startswith(begun) for o in OPENERS):
            return ""
        self._decided_text = True
        held, self._held = self._held, ""
        return held

    def finish(self) -> tuple[list[Call], str]:
        """The calls, or else the text that was held back."""
        calls = read_calls(self._held, self._names)
        return calls, "" if calls else self._held


def read_calls(text: str, names: frozenset[str]) -> list[Call]:
    """The well-formed calls at the start of `text`; what follows the first other thing is left."""
    # One of these models writes the doubled braces of its template.
    text = re.sub(r"^(\s*(?:<tool_call>|```json)?\s*)\{\{(.*)\}\}", r"\1{\2}", text, flags=re.S)
    decoder = json.JSONDecoder()
    calls: list[Call] = []
    while begun := re.match(r"(?:\s|</?tool_call>|```(?:json)?|,)*(?=\{)", text):
        try:
            value, end = decoder.raw_decode(text, begun.end())
        except ValueError:
            break
        arguments = value.get("arguments", value.get("parameters", {}))
        if value.get("name") not in names or not isinstance(arguments, dict):
            break
        call_id = f"call_{uuid.uuid4().hex[:16]}"
        calls.append(Call(call_id, value["name"], json.dumps(arguments, ensure_ascii=False)))
        text = text[end:]
    return calls
