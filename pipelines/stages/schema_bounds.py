"""What a JSON Schema may cost whoever follows it: a small text can ask for endless work.

A grammar has a place for each item of a list that is demanded, and follows references as deep as
they go. A validator follows each part of a value's schema, and two references of one part to the
next one, and so on, are twice as many each time. So both are reckoned before anything follows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import unquote

MOST_ITEMS = 1000  # of a list that are demanded, or listed one by one
MOST_STEPS = 10_000  # of a validator at one place of a value
MOST_LEVELS = 100  # of a schema's text
MOST_RECKONED = 50_000  # parts, each once per level of a value: a third of a second
MOST_NESTED = 250  # schemas inside each other; the engine's stack ends at some thousand

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")
_SAME_PLACE = ("not", "if", "then", "else")
_SAME_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_SAME_PLACE_MAPS = ("dependentSchemas", "dependencies")
_ITEMS = ("items", "additionalItems", "unevaluatedItems", "prefixItems")
_MEMBERS = ("additionalProperties", "unevaluatedProperties")

Part = dict[str, Any]


class BeyondBounds(ValueError):
    """A schema that nobody should follow; the text says why."""


class SchemaBounds:
    """The bounds of one schema. Raises BeyondBounds."""

    def __init__(self, schema: Part) -> None:
        self._root = schema
        self._anchors: dict[str, object] = {}
        self._read()
        self._parts: list[Part] = []
        self._heights: dict[int, int] = {}
        self._measure(schema, 0)
        self._prices = [self._priced({})]
        if max(self._prices[0].values()) > MOST_STEPS:
            raise BeyondBounds("its parts refer to each other in too many ways")

    def is_payable(self, depth: int) -> bool:
        """Whether a value that is nested `depth` deep is judged in a bounded number of steps."""
        while len(self._prices) <= depth:
            if len(self._prices) * len(self._parts) > MOST_RECKONED or depth > MOST_LEVELS:
                return False
            prices = self._priced(self._prices[-1])
            if prices == self._prices[-1]:
                break  # the schema is not as deep as the value
            self._prices.append(prices)
        return self._prices[min(depth, len(self._prices) - 1)][id(self._root)] <= MOST_STEPS

    # ---- the text ----------------------------------------------------------------------------

    def _read(self) -> None:
        waiting: list[tuple[object, int]] = [(self._root, 0)]
        has_reference = has_name = False
        while waiting:
            value, level = waiting.pop()
            if level > MOST_LEVELS:
                raise BeyondBounds(f"it is nested more than {MOST_LEVELS} deep")
            if isinstance(value, list):
                waiting += [(entry, level + 1) for entry in cast("list[object]", value)]
            if not isinstance(value, dict):
                continue
            part = cast("Part", value)
            waiting += [(entry, level + 1) for entry in part.values()]
            _check_lists(part)
            has_reference |= any(isinstance(part.get(word), str) for word in _REFERENCES)
            has_name |= level > 0 and _is_document(part.get("$id"))
            for word in _ANCHORS:
                if isinstance(name := part.get(word), str):
                    self._anchors[name] = part
        if has_reference and has_name:
            raise BeyondBounds("references beside a part with an $id of its own are not followed")

    def _target(self, reference: str) -> object:
        """What a reference means; None: nothing, which the validator tells."""
        if not reference.startswith("#"):
            raise BeyondBounds(f"references to other documents are not followed: {reference}")
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            return self._anchors.get(pointer)
        found: object = self._root
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict):
                found = cast("Part", found).get(name)
            elif isinstance(found, list) and name.isdecimal():
                entries = cast("list[object]", found)
                found = entries[int(name)] if int(name) < len(entries) else None
            else:
                return None
        return found

    # ---- schemas inside each other -----------------------------------------------------------

    def _measure(self, part: Part, level: int) -> int:
        """How many schemas follow each other below this one; collects them all, once each."""
        known = self._heights.get(id(part))
        if level + (known or 0) > MOST_NESTED:
            raise BeyondBounds(f"more than {MOST_NESTED} of its parts are inside each other")
        if known is not None:
            return known
        self._heights[id(part)] = 0
        height = 0
        for below in (*self._in_place(part), *_children(part)):
            height = max(height, 1 + self._measure(below, level + 1))
        self._heights[id(part)] = height
        self._parts.append(part)
        return height

    def _in_place(self, part: Part) -> Iterator[Part]:
        """The schemas that hold for the same value as this one."""
        found: list[object] = [part.get(word) for word in _SAME_PLACE]
        for word in _SAME_PLACE_LISTS:
            found += _entries(part.get(word))
        for word in _SAME_PLACE_MAPS:
            found += _values(part.get(word))
        for word in _REFERENCES:
            if isinstance(reference := part.get(word), str):
                found.append(self._target(reference))
        return _schemas(found)

    # ---- the steps of a validator ------------------------------------------------------------

    def _priced(self, below: Mapping[int, int]) -> dict[int, int]:
        """The steps of each part, where those for the values inside the value are `below`."""
        done: dict[int, int] = {}
        for part in self._parts:
            self._price(part, below, done)
        return done

    def _price(self, part: Part, below: Mapping[int, int], done: dict[int, int]) -> int:
        known = done.get(id(part))
        if known == 0:
            raise BeyondBounds("a part of it refers to itself, without end")
        if known is not None:
            return known
        done[id(part)] = 0
        steps = 1 + _steps_below(part, below)
        for other in self._in_place(part):
            steps += self._price(other, below, done)
        done[id(part)] = min(steps, MOST_STEPS + 1)
        return done[id(part)]


def _steps_below(part: Part, below: Mapping[int, int]) -> int:
    """The most steps for one value inside: one item of a list, or one member of an object."""

    def most(values: list[object]) -> int:
        return max((below.get(id(schema), 0) for schema in _schemas(values)), default=0)

    items: list[object] = []
    for word in _ITEMS:
        items += [part.get(word), *_entries(part.get(word))]
    members: list[object] = [part.get(word) for word in _MEMBERS]
    members += _values(part.get("properties"))
    patterns = _schemas(_values(part.get("patternProperties")))
    return max(
        most(items) + most([part.get("contains")]),
        most(members) + sum(below.get(id(schema), 0) for schema in patterns),
    ) + most([part.get("propertyNames")])


def _children(part: Part) -> Iterator[Part]:
    """The schemas of the values inside the value."""
    found: list[object] = [part.get(word) for word in (*_MEMBERS, "contains", "propertyNames")]
    found += [*_values(part.get("properties")), *_values(part.get("patternProperties"))]
    for word in _ITEMS:
        found += [part.get(word), *_entries(part.get(word))]
    return _schemas(found)


def _check_lists(part: Part) -> None:
    least = part.get("minItems")
    if isinstance(least, int | float) and least > MOST_ITEMS:
        raise BeyondBounds(f"its minItems {least:g} is above {MOST_ITEMS}")
    for word in ("prefixItems", "items"):
        if len(_entries(part.get(word))) > MOST_ITEMS:
            raise BeyondBounds(f"its {word} are more than {MOST_ITEMS}")


def _is_document(name: object) -> bool:
    return isinstance(name, str) and not name.startswith("#")


def _schemas(values: list[object]) -> Iterator[Part]:
    return (cast("Part", value) for value in values if isinstance(value, dict))


def _entries(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _values(value: object) -> list[object]:
    return list(cast("Part", value).values()) if isinstance(value, dict) else []
