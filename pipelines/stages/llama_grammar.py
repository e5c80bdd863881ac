"""From the schema of a tool to a grammar that a small model cannot leave.

The engine follows most of JSON Schema, and passes over the keywords that it does not know; so the
arguments of a schema that has others than those of `_EXACT` are judged once they are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from pipelines.stages.schema_bounds import MOST_ITEMS
from pipelines.stages.tool_schema import EMPTY

# One form for every text: a model that may write white space may do so for ever.
_GUIDANCE = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "coerce_one_of": True,
    "lenient": True,
}
_NOTES = ("title", "description", "default", "examples", "deprecated", "$comment", "$schema")
# Keywords that the engine holds a model to entirely.
_EXACT = frozenset(
    (
        *("type", "enum", "const", "properties", "required", "additionalProperties"),
        *("items", "minItems", "maxItems", "minLength", "maxLength", "anyOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("$ref", "$defs", "definitions"),
        *_NOTES,
    )
)
# A schema with one of these may be meant as a part of another one, or names members itself.
_OPEN = frozenset(
    (
        *("allOf", "not", "if", "then", "else", "dependentSchemas", "$dynamicRef"),
        *("patternProperties", "propertyNames", "unevaluatedProperties", "minProperties"),
        "dependencies",
    )
)
_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains")

Schema = Mapping[str, Any]


def is_exact(schema: Schema) -> bool:
    """Whether a text that follows the grammar of this schema surely fits it."""
    return all(_EXACT.issuperset(part) for part in _parts(schema))


def guided(schema: Schema) -> dict[str, Any]:
    """The schema as the engine is to follow it: never wider, and as narrow as it was meant.

    A model is not to invent members: where a schema lists some and does not speak of others, there
    are no others. Left open are schemas whose parts may complete each other.
    """
    if set(schema) <= {"type", *_NOTES}:
        schema = EMPTY  # a tool that takes nothing, said in another way
    parts = list(_parts(schema))
    is_composed = any(not _OPEN.isdisjoint(part) for part in parts)
    is_composed |= any("$ref" in part and _is_more_than_reference(part) for part in parts)
    is_composed |= any("properties" in part and _has_choices(part) for part in parts)
    narrowed = dict(schema) if is_composed else _rebuilt(schema, _closed)
    return {**_shortened(narrowed), "x-guidance": _GUIDANCE}


def _shortened(schema: Any) -> Any:
    """No list has more than `MOST_ITEMS`: a grammar has a place for each of them.

    Whatever looks like a bound is lowered wherever it stands, because a reference may lead there.
    """
    if isinstance(schema, list):
        return [_shortened(part) for part in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    made = {name: _shortened(part) for name, part in cast("dict[str, object]", schema).items()}
    most = made.get("maxItems")
    if isinstance(most, int | float) and most > MOST_ITEMS:
        made["maxItems"] = MOST_ITEMS
    return made


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or "additionalProperties" in schema:
        return schema
    required = schema.get("required", [])
    if not isinstance(required, list) or not set(required) <= set(properties):
        return schema
    return {**schema, "additionalProperties": False}


def _is_more_than_reference(schema: Schema) -> bool:
    return not set(schema) <= {"$ref", "$defs", "definitions", "type", *_NOTES}


def _has_choices(schema: Schema) -> bool:
    return "anyOf" in schema or "oneOf" in schema


def _parts(schema: Schema) -> Iterator[Schema]:
    """The schema and every schema inside it."""
    waiting: list[object] = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict):
            continue
        found = cast("dict[str, Any]", part)
        yield found
        waiting += _below(found)


def _below(schema: Schema) -> Iterator[object]:
    for word in _MAPS:
        if isinstance(under := schema.get(word), dict):
            yield from cast("dict[str, object]", under).values()
    for word in _LISTS:
        if isinstance(under := schema.get(word), list):
            yield from cast("list[object]", under)
    for word in _SINGLE:
        yield schema.get(word)


def _rebuilt(schema: object, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """The schema with `change` made to it and to every schema inside it."""
    if not isinstance(schema, dict):
        return schema
    made = dict(cast("dict[str, Any]", schema))
    for word in _MAPS:
        if isinstance(under := made.get(word), dict):
            made[word] = {name: _rebuilt(part, change) for name, part in under.items()}
    for word in _LISTS:
        if isinstance(under := made.get(word), list):
            made[word] = [_rebuilt(part, change) for part in under]
    for word in _SINGLE:
        if word in made:
            made[word] = _rebuilt(made[word], change)
    return change(made)
