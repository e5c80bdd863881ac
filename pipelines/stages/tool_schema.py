"""What a tool's JSON Schema says of the arguments of a call.

Whatever wrote the arguments, a grammar or a stranger, they are judged here before they count.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NoReturn, cast

import jsonschema_rs

from pipelines.stages.schema_bounds import SchemaBounds
from pipelines.types import StageError, ToolSpec

BACKTRACK_LIMIT = 100_000  # steps of one pattern: a hostile one must not hold a core
KEPT_SCHEMAS = 256  # of the tools of running sessions
SHOWN_CHARS = 160  # of a problem, in a message

# What a tool without parameters takes; a schema of no members allows anything.
EMPTY: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


class BadSchema(ValueError):
    """The parameters of a tool are no usable JSON Schema; the text says why."""


class Parameters:
    """The parameters of one tool. Raises BadSchema."""

    def __init__(self, parameters_json: str) -> None:
        self.schema = _object_schema(parameters_json)
        try:
            self._bounds = SchemaBounds(self.schema)
            # No reference is fetched: a schema must not make this server ask another one.
            self._validator = jsonschema_rs.validator_for(
                self.schema,
                retriever=_refuse,
                validate_formats=True,
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT),
            )
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            raise BadSchema(_first_line(error)) from None

    def problem(self, arguments: str) -> str | None:
        """What is wrong with a JSON text as arguments of this tool; None: nothing."""
        try:
            value: Any = json.loads(arguments)
        except (ValueError, RecursionError):
            return "they are no JSON text"
        if not isinstance(value, dict):
            return "they are no JSON object"
        if not self._bounds.is_payable(_depth(cast("object", value))):
            return "they are nested too deep for these parameters"
        try:
            error = next(iter(self._validator.iter_errors(value)), None)
        except (ValueError, jsonschema_rs.ReferencingError) as failure:
            return _first_line(failure)
        if error is None:
            return None
        place = "/".join(str(step) for step in error.instance_path)
        return f"{_first_line(error)} (at /{place})"


@lru_cache(KEPT_SCHEMAS)
def parameters_of(tool: ToolSpec) -> Parameters:
    """The parameters of a tool. Raises BadSchema."""
    return Parameters(tool.parameters_json)


def refuse_schema(tool: ToolSpec, cause: object) -> StageError:
    return StageError(
        "llm_bad_tool_schema",
        f"A call of the tool {tool.name!r} cannot be written, because its parameters are no "
        f"usable JSON Schema ({cause}): correct them.",
    )


def invalid_call(name: str, problem: str) -> StageError:
    return StageError(
        "tool_call_invalid",
        f"The language model was told to call the tool {name!r}, and its arguments do not fit the "
        f"tool's parameters: {problem}. Simplify the parameters, or use a more capable model.",
    )


def _object_schema(parameters_json: str) -> dict[str, Any]:
    """The schema of an object: arguments are never anything else."""
    try:
        schema: Any = json.loads(parameters_json)
    except (ValueError, RecursionError) as error:
        raise BadSchema(str(error)) from None
    if schema is None or schema == {} or schema is True:
        return EMPTY
    if not isinstance(schema, dict):
        raise BadSchema("it is no JSON object")
    types = cast("object", schema.get("type", "object"))
    if types != "object" and not (isinstance(types, list) and "object" in types):
        raise BadSchema(f"arguments are an object, and its type is {json.dumps(types)}")
    return {**schema, "type": "object"}


def _depth(value: object) -> int:
    """How deep a JSON value is nested; what is no list and no object is 0 deep."""
    depth = 0
    inside = [value]
    while True:
        listed = [entry for entry in inside if isinstance(entry, list | dict)]
        if not listed:
            return depth
        depth += 1
        inside = [
            below
            for entry in listed
            for below in (entry.values() if isinstance(entry, dict) else entry)
        ]


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"references to other documents are not followed: {uri}")


def _first_line(error: Exception) -> str:
    line = str(error).partition("\n")[0]
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"
