"""The arguments of calls are judged by their schema, and the schemas made fit for a grammar."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from pipelines.stages.llama_grammar import guided, is_exact
from pipelines.stages.tool_schema import BadSchema, Parameters, parameters_of
from pipelines.types import ToolSpec
from tests.pipelines.stages.tool_schemas import BAD_SCHEMAS, SCHEMAS, UNHELD, objects


@pytest.mark.parametrize("schema", BAD_SCHEMAS.values(), ids=BAD_SCHEMAS)
def test_what_is_no_schema_of_an_object_is_refused(schema: Any) -> None:
    with pytest.raises(BadSchema):
        Parameters(json.dumps(schema))


def test_what_is_no_json_is_refused() -> None:
    for text in ("", "{", "[" * 5000, "NaN,"):
        with pytest.raises(BadSchema):
            Parameters(text)


@pytest.mark.parametrize(
    "arguments", ["", "{", "7", "[]", "null", '"a"', '{"a": 1}', '{"b": 1}', "[" * 5000]
)
def test_arguments_that_do_not_fit_are_told_why(arguments: str) -> None:
    parameters = Parameters(json.dumps(objects(a={"type": "string"})))
    problem = parameters.problem(arguments)
    assert problem and len(problem) < 300
    assert parameters.problem('{"a": "x"}') is None
    assert parameters.problem('{"a": "x", "more": 1}') is None, "the schema does not forbid it"


def test_a_tool_without_parameters_takes_an_empty_object_alone() -> None:
    for text in ("{}", "true", "null"):
        parameters = Parameters(text)
        assert parameters.problem("{}") is None
        assert parameters.problem('{"a": 1}') is not None


def test_a_hostile_pattern_holds_nobody_up() -> None:
    nested = objects(a={"type": "string", "pattern": "^(?=x?)(a+)+$"})
    assert Parameters(json.dumps(nested)).problem(json.dumps({"a": "a" * 5000 + "!"}))


def test_another_document_is_never_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a connection is made")

    monkeypatch.setattr("socket.socket.connect", forbidden)
    with pytest.raises(BadSchema, match="not followed"):
        Parameters(json.dumps(BAD_SCHEMAS["another document"]))


def test_one_tool_s_schema_is_read_once() -> None:
    tool = ToolSpec("look", "", json.dumps(SCHEMAS["tree"]))
    assert parameters_of(tool) is parameters_of(ToolSpec("look", "", tool.parameters_json))


# ---- for a grammar -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_narrowed_schema_is_still_one(name: str) -> None:
    parameters = Parameters(json.dumps(SCHEMAS[name]))
    jsonschema.Draft202012Validator.check_schema(guided(parameters.schema))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("optional", {"first": "a", "invented": 1}),
        ("nested", {"place": {"city": "x", "at": {"lat": 1, "lon": 2, "alt": 3}}}),
        ("tree", {"root": {"value": 1, "next": {"value": 2, "prev": {}}}}),
        ("type alone", {"invented": 1}),
    ],
)
def test_members_that_a_schema_does_not_speak_of_are_not_invented(
    name: str, value: dict[str, Any]
) -> None:
    schema = Parameters(json.dumps(SCHEMAS[name])).schema
    assert jsonschema.Draft202012Validator(schema).is_valid(value)
    assert not jsonschema.Draft202012Validator(guided(schema)).is_valid(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allOf", {"a": 1, "b": "x"}),
        ("open", {"a": "x", "b": 1}),
        ("undeclared", {"zip": 1}),
        ("conditional", {"kind": "x", "extra": 1}),
    ],
)
def test_schemas_whose_parts_complete_each_other_stay_open(
    name: str, value: dict[str, Any]
) -> None:
    schema = Parameters(json.dumps(SCHEMAS[name])).schema
    assert jsonschema.Draft202012Validator(guided(schema)).is_valid(value)


def test_only_what_a_grammar_surely_holds_is_told_before_it_is_whole() -> None:
    exact = {name for name, schema in SCHEMAS.items() if is_exact(schema)}
    assert {"enum", "nested", "array", "anyOf", "tree", "ranges", "lengths", "unicode"} <= exact
    assert not exact & {*UNHELD, "formats", "pattern", "multiple", "allOf", "oneOf", "tuple"}
