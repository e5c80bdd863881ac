"""What is wrong with a client's event: code, path and message, as the wire words them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

Location = tuple[int | str, ...]

_EXCERPT_CHARACTERS = 80  # enough to recognise one's own value; a client may send megabytes

_QUOTED = re.compile("'([^']*)'")  # the allowed words in pydantic's "'a', 'b' or 'c'"

# Kinds of pydantic errors that mean "another JSON type was expected", with that type's name.
_EXPECTED_TYPES = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "a boolean",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "none_required": "null",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault. `param` is the dotted path of the field, None where no field is to blame."""

    code: str
    message: str
    param: str | None


class Invalid(ValueError):
    """Raised by a validator, which knows the fault but not where its value lies in the event.

    at: where the fault lies below the value that the validator was given.
    """

    def __init__(self, describe: Callable[..., Problem], at: Location = ()) -> None:
        super().__init__("invalid value")
        self._describe = describe
        self._at = at

    def problem(self, location: Location) -> Problem:
        """The fault of a value that lies at `location`."""
        return self._describe(dotted(location + self._at))


def dotted(location: Location) -> str:
    """("session", "tools", 0, "name") to "session.tools[0].name"."""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{_shortened(step)}" if path else _shortened(step)
    return path


def excerpt(value: object) -> str:
    """A value as an error message quotes it."""
    match value:
        case str():
            return f"'{_shortened(value)}'"
        case None | bool() | int() | float():
            return _shortened(json.dumps(value))
        case _:
            return type_name(value)


def _shortened(text: str) -> str:
    return text if len(text) <= _EXCERPT_CHARACTERS else f"{text[:_EXCERPT_CHARACTERS]}..."


def type_name(value: object) -> str:
    """The JSON type of a value, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal number"
        case str():
            return "a string"
        case list() | tuple():
            return "an array"
        case _:
            return "an object"


def listing(words: Sequence[str]) -> str:
    """["a", "b", "c"] to "'a', 'b', and 'c'"."""
    quoted = [f"'{word}'" for word in words]
    if len(quoted) <= 2:
        return " and ".join(quoted)
    return ", ".join(quoted[:-1]) + f", and {quoted[-1]}"


def _counted(number: int, value: object) -> str:
    """So many of what a value consists of."""
    one, more = ("character", "characters") if isinstance(value, str) else ("entry", "entries")
    return f"{number} {one if number == 1 else more}"


def missing(path: str) -> Problem:
    return Problem("missing_required_parameter", f"Missing required parameter: '{path}'.", path)


def unknown(path: str) -> Problem:
    return Problem("unknown_parameter", f"Unknown parameter: '{path}'.", path)


def wrong_type(path: str, expected: str, value: object) -> Problem:
    message = f"Invalid type for '{path}': expected {expected}, but got {type_name(value)} instead."
    return Problem("invalid_type", message, path)


def unsupported(path: str, value: object, supported: Sequence[str], why: str = "") -> Problem:
    message = f"Invalid value: {excerpt(value)}. Supported values are: {listing(supported)}."
    return Problem("invalid_value", f"{message} {why}".strip(), path)


def invalid(path: str | None, message: str) -> Problem:
    return Problem("invalid_value", message, path)


def first_problem(error: ValidationError, root: Location = ()) -> Problem:
    """The first fault that a pydantic model found, in the wire's words."""
    details = error.errors(include_url=False)[0]
    location = root + details["loc"]
    cause = details.get("ctx", {}).get("error")
    match cause:
        case ValidationError():
            return first_problem(cause, location)
        case Invalid():
            return cause.problem(location)
        case _:
            return _translate(details, dotted(location))


def _translate(details: ErrorDetails, path: str) -> Problem:
    kind, value = details["type"], details["input"]
    context: dict[str, Any] = details.get("ctx", {})
    match kind:
        case "missing":
            return missing(path)
        case "extra_forbidden":
            return unknown(path)
        case "literal_error":
            if not isinstance(value, str):
                return wrong_type(path, f"one of {context['expected']}", value)
            return unsupported(path, value, _QUOTED.findall(context["expected"]))
        case "greater_than_equal":
            why = f"expected at least {context['ge']}, but got {excerpt(value)} instead"
        case "less_than_equal":
            why = f"expected at most {context['le']}, but got {excerpt(value)} instead"
        case "greater_than":
            why = f"expected a number above {context['gt']:g}, but got {excerpt(value)} instead"
        case "string_too_short" | "too_short":
            why = f"expected at least {_counted(context['min_length'], value)}"
        case "string_too_long" | "too_long":
            why = f"expected at most {_counted(context['max_length'], value)}"
        case _ if kind in _EXPECTED_TYPES:
            return wrong_type(path, _EXPECTED_TYPES[kind], value)
        case _:
            why = details["msg"]
    return invalid(path, f"Invalid '{path}': {why}.")
