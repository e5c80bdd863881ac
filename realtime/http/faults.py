"""What is wrong with a field of an HTTP request: named, with what it takes and what came.

A field's words here are longer than those of `problems`, whose texts are those that OpenAI's
server sends over the WebSocket.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from realtime.protocol.json_text import Unreadable
from realtime.protocol.problems import Location, Problem, dotted, excerpt, first_problem, invalid

_QUOTED = re.compile("'([^']*)'")  # the allowed words in pydantic's "'a', 'b' or 'c'"

# Kinds of pydantic errors about a number that is none, or lies outside of its range.
_OF_NUMBERS = frozenset(
    {
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
        "finite_number",
        "float_parsing",
        "int_parsing",
        "int_parsing_size",
    }
)

# By field and word: what whoever sends it means.
_HINTS: Mapping[tuple[str, str], str] = {
    ("response_format", "ogg"): "Ogg is sent as 'opus'",
    ("response_format", "oga"): "Ogg is sent as 'opus'",
    ("response_format", "m4a"): "AAC is sent as 'aac'",
    ("response_format", "pcm16"): "16-bit samples are sent as 'pcm'",
}


def first_fault(error: ValidationError, model: type[BaseModel], root: Location = ()) -> Problem:
    """The first fault that `model` found. root: where the model's own value lies."""
    details = error.errors(include_url=False)[0]
    kind, value, location = details["type"], details["input"], details["loc"]
    path = dotted(root + location)
    if kind == "literal_error" and isinstance(value, str):
        words = _QUOTED.findall(str(details.get("ctx", {})["expected"]))
        return wrong_word(path, value, words, _HINTS.get((str(location[-1]), value.lower()), ""))
    if kind in _OF_NUMBERS and len(location) == 1:
        return _instead(path, _range_of(model, str(location[0])), value)
    if kind == "bool_parsing":
        return _instead(path, "true or false", value)
    return first_problem(error, root)


def wrong_word(path: str, word: str, words: list[str] | tuple[str, ...], why: str = "") -> Problem:
    """A word that is none of those that the field takes. why: a hint, without a full stop."""
    problem = _instead(path, f"one of {', '.join(words)}", word)
    return invalid(path, f"{problem.message} {why}.") if why else problem


def unreadable_body(error: Unreadable) -> str:
    """Why a body is no JSON: what reads it calls it an event, as it is on the WebSocket."""
    message = error.problem.message
    for event, body in (("The event ", "The body "), ("An event ", "The body ")):
        if message.startswith(event):
            return body + message.removeprefix(event)
    return message


def _instead(path: str, expected: str, value: object) -> Problem:
    return invalid(
        path, f"Invalid '{path}': expected {expected}, but got {excerpt(value)} instead."
    )


@cache
def _range_of(model: type[BaseModel], field: str) -> str:
    """What a field of a model takes: "a number above 0 and at most 1"."""
    schema = model.model_json_schema()["properties"][field]
    schemas: list[dict[str, Any]] = [schema, *schema.get("anyOf", ())]
    found = next(entry for entry in schemas if entry.get("type") in ("number", "integer"))
    kind = "an integer" if found["type"] == "integer" else "a number"
    match found:
        case {"minimum": least, "maximum": most}:
            return f"{kind} from {_plain(least)} to {_plain(most)}"
        case {"exclusiveMinimum": below, "maximum": most}:
            return f"{kind} above {_plain(below)} and at most {_plain(most)}"
        case _:
            return kind


def _plain(number: float) -> str:
    """4.0 to "4"; an integer in all its digits."""
    return str(number) if isinstance(number, int) else f"{number:g}"
