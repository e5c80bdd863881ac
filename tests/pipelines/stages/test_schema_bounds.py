"""A schema that asks for endless work is refused before anything follows it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipelines.stages.llama_grammar import guided
from pipelines.stages.schema_bounds import MOST_ITEMS, MOST_LEVELS, MOST_NESTED
from pipelines.stages.tool_schema import BadSchema, Parameters
from tests.pipelines.stages.tool_schemas import SCHEMAS, objects


def chain(length: int, *, word: str = "allOf", width: int = 2) -> dict[str, Any]:
    """Each definition names the next one several times."""
    definitions: dict[str, Any] = {
        f"d{number}": {word: [{"$ref": f"#/$defs/d{number + 1}"}] * width}
        for number in range(length)
    }
    return {"$defs": {**definitions, f"d{length}": {}}, "$ref": "#/$defs/d0"}


def row(length: int) -> dict[str, Any]:
    """Each definition has a member that is the next one."""
    definitions: dict[str, Any] = {
        f"d{number}": objects([], a={"$ref": f"#/$defs/d{number + 1}"}) for number in range(length)
    }
    return {"$defs": {**definitions, f"d{length}": {}}, "$ref": "#/$defs/d0"}


def nested(depth: int, innermost: Any) -> Any:
    for _ in range(depth):
        innermost = {"not": innermost}
    return innermost


def value(depth: int) -> str:
    return '{"x": ' * depth + "{}" + "}" * depth


BOMBS: dict[str, Any] = {
    "items demanded": objects(a={"type": "array", "minItems": MOST_ITEMS + 1}),
    "items as a fraction": objects(a={"minItems": 1e9}),
    "items behind a reference": {"x": {"minItems": 10**9}, **objects(a={"$ref": "#/x"})},
    "items one by one": objects(a={"prefixItems": [{}] * (MOST_ITEMS + 1)}),
    "items listed as before": objects(a={"items": [{}] * (MOST_ITEMS + 1)}),
    "doubled": chain(30),
    "doubled by choice": chain(30, word="anyOf"),
    "doubled below": {"$defs": chain(30)["$defs"], **objects(a={"$ref": "#/$defs/d0"})},
    "doubled by name": {
        "$defs": {
            **{f"d{n}": {"$anchor": f"n{n}", "oneOf": [{"$ref": f"#n{n + 1}"}] * 2}
               for n in range(30)},
            "end": {"$anchor": "n30"},
        },
        "$ref": "#n0",
    },
    "without end": {"$ref": "#"},
    "without end in parts": {"allOf": [{"$ref": "#"}, {"not": {"$ref": "#"}}]},
    "deep by reference": row(MOST_NESTED),
    "deep in itself": nested(MOST_LEVELS + 1, {}),
    "names of documents": {
        "$defs": {"a": {"$id": "https://example.org/a"}}, **objects(a={"$ref": "#/$defs/a"})
    },
}  # fmt: skip


@pytest.mark.parametrize("schema", BOMBS.values(), ids=BOMBS)
def test_what_asks_for_endless_work_is_refused(schema: Any) -> None:
    with pytest.raises(BadSchema) as failure:
        Parameters(json.dumps(schema))
    assert len(str(failure.value)) < 200


@pytest.mark.parametrize(
    "schema",
    [
        *SCHEMAS.values(),
        chain(8),
        chain(60, width=1),
        row(50),
        objects(a={"type": "array", "minItems": MOST_ITEMS, "maxItems": 10**9}),
        objects(minItems={"type": "integer"}, prefixItems={"type": "string"}),
        objects([], next={"$ref": "#"}),
        {"$id": "https://example.org/root", **objects([], next={"$ref": "#"})},
    ],
)
def test_what_programs_write_is_not(schema: Any) -> None:
    Parameters(json.dumps(schema))


def test_what_doubles_at_each_level_of_a_value_is_judged_as_deep_as_can_be() -> None:
    """The value is the model's, and so is its depth."""
    twice = {"allOf": [{"$ref": "#/$defs/node"}] * 2}
    schema = {"$defs": {"node": objects([], x=twice)}, "$ref": "#/$defs/node"}
    parameters = Parameters(json.dumps(schema))
    assert parameters.problem(value(5)) is None
    for depth in (40, 90):
        problem = parameters.problem(value(depth))
        assert problem is not None and "too deep" in problem
    wide = {f"p{number}": {"type": "string"} for number in range(10_000)}
    heavy = Parameters(json.dumps(objects([], x={"$ref": "#"}, **wide)))
    assert heavy.problem(value(2)) is None and heavy.problem(value(90)) is not None
    once = Parameters(json.dumps(objects([], x={"$ref": "#"})))
    assert once.problem(value(90)) is None


def test_a_grammar_has_no_place_for_more_items_than_are_bearable() -> None:
    wide = {"type": "array", "items": {"type": "integer"}, "maxItems": 2_000_000_000}
    schema = {
        "$defs": {"wide": wide},
        "elsewhere": wide,
        "allOf": [objects(a=wide)],
        **objects(
            a=wide, b={"$ref": "#/elsewhere"}, c={**wide, "maxItems": 7}, d={"maxItems": 1e9}
        ),
    }
    text = json.dumps(guided(Parameters(json.dumps(schema)).schema))
    assert "2000000000" not in text and "1000000000" not in text
    assert text.count(f'"maxItems": {MOST_ITEMS}') == 5 and '"maxItems": 7' in text
