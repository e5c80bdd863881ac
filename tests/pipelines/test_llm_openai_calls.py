"""A demanded call of a remote model fits its schema, or the reply fails and says why."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from pipelines.fakes.chat_server import DONE, Behaviour, event, replies, streams
from pipelines.stages.llm_openai import OpenAIWriter
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    StageError,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
    Usage,
    UsageSoFar,
    WriteOutput,
    WriteRequest,
)
from tests.pipelines.remote_writer import talking_to
from tests.pipelines.waiting import check

SCHEMA = {
    "$defs": {"Unit": {"enum": ["C", "F"]}},
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"$ref": "#/$defs/Unit"}},
    "required": ["city", "unit"],
}
FITTING = '{"city": "Lisbon", "unit": "C"}'
WEATHER = ToolSpec("weather", "Of a city", json.dumps(SCHEMA))
CLOCK = ToolSpec("clock", "The time", '{"type": "object", "properties": {}}')
NAMED = WriteRequest("r", (Message("user", "hi"),), tools=(WEATHER, CLOCK), tool_choice="weather")
REQUIRED = replace(NAMED, tool_choice="required")


def piece(arguments: str, name: str | None = "weather", index: int = 0) -> bytes:
    call = {"index": index, "function": {"name": name, "arguments": arguments}}
    return event(tool_calls=[call if name is None else {**call, "id": f"call_{index}"}])


def counted(read: int, written: int) -> bytes:
    usage = {"prompt_tokens": read, "completion_tokens": written}
    return b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"


def calls(*parts: bytes, reason: str = "tool_calls") -> Behaviour:
    return streams(*parts, event(finish_reason=reason), counted(10, 4), DONE)


def says(text: str, reason: str = "stop") -> Behaviour:
    return streams(
        event(content=text[:3]),
        event(content=text[3:]),
        event(finish_reason=reason),
        counted(20, 3),
        DONE,
    )


async def answer(writer: OpenAIWriter, request: WriteRequest) -> list[WriteOutput]:
    found = [output async for output in writer.open(request)]
    return [output for output in found if not isinstance(output, UsageSoFar)]


def ask(request: WriteRequest, *behaviours: Behaviour) -> tuple[list[WriteOutput], list[Any]]:
    """The outputs, and the bodies of what was asked."""
    found: list[WriteOutput] = []
    bodies: list[Any] = []

    async def main() -> None:
        async with talking_to(*behaviours) as (server, writer):
            found.extend(await answer(writer, request))
            bodies.extend(server.bodies)

    check(main)
    return found, bodies


def refused(request: WriteRequest, *behaviours: Behaviour) -> tuple[StageError, list[Any]]:
    bodies: list[Any] = []
    errors: list[StageError] = []

    async def main() -> None:
        async with talking_to(*behaviours) as (server, writer):
            found: list[WriteOutput] = []
            with pytest.raises(StageError) as failure:
                async for output in writer.open(request):
                    found.append(output)  # noqa: PERF401 (what came before a failure counts)
            assert all(isinstance(output, UsageSoFar) for output in found)
            errors.append(failure.value)
            bodies.extend(server.bodies)

    check(main)
    return errors[0], bodies


def test_a_good_call_is_passed_on_and_what_is_said_beside_it_is_not() -> None:
    parts = (
        event(content="Let me look."),
        piece('{"city": "Lis'),
        piece('bon", "unit": "C"}', None),
    )
    found, bodies = ask(NAMED, calls(*parts))
    assert found == [
        ToolCallDelta(0, "call_0", "weather", FITTING),
        Finished(FinishReason.TOOL_CALLS, Usage(10, 0, 4)),
    ]
    assert len(bodies) == 1
    assert bodies[0]["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert "parallel_tool_calls" not in bodies[0]


@pytest.mark.parametrize(
    "first",
    [
        says("I think it is fine."),
        calls(piece('{"city": "Lisbon"')),
        calls(piece("")),
        calls(piece('{"city": "Lisbon", "unit": "K"}')),
        calls(piece("[1]")),
        calls(piece("{}", "clock")),
        calls(piece(FITTING, "no_such_tool")),
        streams(event(finish_reason="stop"), counted(20, 3), DONE),
    ],
)
def test_what_is_no_such_call_is_asked_for_once_more(first: Behaviour) -> None:
    found, bodies = ask(NAMED, first, says(FITTING))
    (call, end) = found
    assert isinstance(call, ToolCallDelta) and (call.name, call.arguments) == ("weather", FITTING)
    assert isinstance(end, Finished) and end.reason is FinishReason.TOOL_CALLS
    assert (end.usage.input_tokens, end.usage.output_tokens) in ((30, 7), (40, 6)), "both are told"
    repair = bodies[1]
    assert "tools" not in repair and "tool_choice" not in repair
    wanted = repair["response_format"]
    assert wanted["type"] == "json_schema" and wanted["json_schema"]["schema"] == SCHEMA
    assert repair["messages"][:1] == bodies[0]["messages"]
    assert "weather" in repair["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (says("I think it is fine."), "tool_call_not_made"),
        (calls(piece(FITTING, "no_such_tool")), "tool_call_not_made"),
        (calls(piece('{"city": 1}')), "tool_call_invalid"),
    ],
)
@pytest.mark.parametrize("status", ["400 Bad", "500 Oops", "404 No"])
def test_a_server_without_schemas_makes_the_reply_fail_with_its_first_fault(
    first: Behaviour, code: str, status: str
) -> None:
    error, _ = refused(NAMED, first, replies(status))
    assert error.code == code


@pytest.mark.parametrize("status", ["400 Bad", "404 No", "422 No", "500 Oops"])
def test_a_server_that_takes_no_tools_is_asked_without_them(status: str) -> None:
    refusal = replies(status, b'{"error": {"message": "m does not support tools"}}')
    tries = [refusal, refusal] if status.startswith("5") else [refusal]  # what may recover
    found, bodies = ask(NAMED, *tries, says(FITTING))
    assert isinstance(found[0], ToolCallDelta) and found[0].arguments == FITTING
    assert "tools" in bodies[0] and "tools" not in bodies[-1]
    error, _ = refused(NAMED, *tries, replies("400 Bad"))
    assert error.code == "llm_tools_refused" and "out of the session" in error.detail
    error, _ = refused(replace(NAMED, tool_choice="auto"), *tries, says("Fine."))
    assert error.code == "llm_tools_refused" and "out of the session" in error.detail
    error, bodies = refused(NAMED, replies("400 Bad", b"no such field"), says(FITTING))
    assert error.code == "llm_refused" and len(bodies) == 1


@pytest.mark.parametrize("fence", ["```json\n{}\n```", " ```\n{} ```\n", "```JSON {}```"])
def test_a_second_answer_in_a_fence_is_taken_out_of_it(fence: str) -> None:
    found, bodies = ask(NAMED, says("Fine."), says(fence.replace("{}", FITTING)))
    assert isinstance(found[0], ToolCallDelta) and found[0].arguments == FITTING
    assert bodies[1]["messages"][-1]["role"] == "user"
    made = json.dumps({"name": "clock", "arguments": {}})
    found, _ = ask(REQUIRED, says("It is noon."), says(fence.replace("{}", made)))
    assert isinstance(found[0], ToolCallDelta) and found[0].name == "clock"


def test_the_second_answer_is_judged_too_and_is_the_last() -> None:
    for second in (says("no json"), says('{"city": "Lisbon"}'), says("[]")):
        error, bodies = refused(NAMED, says("Fine."), second)
        assert error.code == "tool_call_invalid" and len(bodies) == 2


def test_any_of_several_tools_may_be_called_at_the_second_try() -> None:
    made = json.dumps({"name": "clock", "arguments": {}})
    found, bodies = ask(REQUIRED, says("It is noon."), says(made))
    assert isinstance(found[0], ToolCallDelta) and found[0].name == "clock"
    schema = bodies[1]["response_format"]["json_schema"]["schema"]
    judge = jsonschema.Draft202012Validator(schema)
    assert judge.is_valid({"name": "weather", "arguments": json.loads(FITTING)})
    assert not judge.is_valid({"name": "weather", "arguments": {"city": "x", "unit": "K"}})
    assert not judge.is_valid({"name": "other", "arguments": {}})
    for nonsense in ("7", "{}", '{"name": "clock"}', '{"name": "other", "arguments": {}}'):
        error, _ = refused(REQUIRED, says("It is noon."), says(nonsense))
        assert error.code in ("tool_call_not_made", "tool_call_invalid")


def test_several_calls_at_once_only_where_they_are_allowed() -> None:
    both = calls(piece(FITTING), piece("{}", "clock", 1))
    found, _ = ask(REQUIRED, both)
    assert [output.name for output in found if isinstance(output, ToolCallDelta)] == [
        "weather",
        "clock",
    ]
    for request in (replace(REQUIRED, parallel_tool_calls=False), NAMED):
        found, _ = ask(request, both)
        assert [o.name for o in found if isinstance(o, ToolCallDelta)] == ["weather"]
    auto = replace(REQUIRED, tool_choice="auto", parallel_tool_calls=False)
    found, bodies = ask(auto, both)
    assert [o.name for o in found if isinstance(o, ToolCallDelta)] == ["weather"]
    assert bodies[0]["parallel_tool_calls"] is False


def test_one_bad_call_among_several_is_asked_for_anew() -> None:
    """The one that was called badly is known: only its arguments are asked for."""
    found, bodies = ask(REQUIRED, calls(piece('{"city"')), says(FITTING))
    assert isinstance(found[0], ToolCallDelta) and found[0].arguments == FITTING
    assert bodies[1]["response_format"]["json_schema"]["schema"] == SCHEMA
    both = calls(piece('{"city"'), piece("{}", "clock", 1))
    found, bodies = ask(REQUIRED, both, says(json.dumps({"name": "clock", "arguments": {}})))
    assert [o.name for o in found if isinstance(o, ToolCallDelta)] == ["clock"]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_call_that_was_cut_short_is_told_as_such_and_not_asked_for_again(reason: str) -> None:
    found, bodies = ask(NAMED, calls(piece('{"city": "Li'), reason=reason))
    assert found == [
        ToolCallDelta(0, "call_0", "weather", '{"city": "Li'),
        Finished(FinishReason(reason), Usage(10, 0, 4)),
    ]
    found, _ = ask(NAMED, says("Once upon", reason))
    assert found == [Finished(FinishReason(reason), Usage(20, 0, 3))]
    assert len(bodies) == 1


def test_calls_that_nobody_demanded_are_passed_on_as_they_come() -> None:
    auto = replace(NAMED, tool_choice="auto")
    found, _ = ask(auto, calls(event(content="Well. "), piece("{"), piece("}", None)))
    assert found[:3] == [
        TextDelta("Well. "),
        ToolCallDelta(0, "call_0", "weather", "{"),
        ToolCallDelta(0, "", "", "}"),
    ]


def test_calls_of_tools_that_were_not_offered_are_passed_over() -> None:
    auto = replace(NAMED, tool_choice="auto")
    parts = (
        piece("{}", "no_such_tool", 0),
        piece(FITTING, "weather", 1),
        piece("{}", "other", 2),
        piece("{}", "clock", 3),
    )
    found, _ = ask(auto, calls(event(content="Well."), *parts))
    assert found[:-1] == [
        TextDelta("Well."),
        ToolCallDelta(0, "call_1", "weather", FITTING),
        ToolCallDelta(1, "call_3", "clock", "{}"),
    ]
    found, _ = ask(replace(auto, parallel_tool_calls=False), calls(*parts))
    assert found[:-1] == [ToolCallDelta(0, "call_1", "weather", FITTING)]


def test_a_long_call_that_is_held_back_shows_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.stages.llm_openai.SIGN_OF_LIFE_S", 0.0)
    parts = (piece("{}"), piece("", "clock", 1), piece("{", None, 1), piece("}", None, 1))
    outputs: list[WriteOutput] = []

    async def main() -> None:
        async with talking_to(calls(*parts)) as (_, writer):
            request = replace(NAMED, tool_choice="auto")
            outputs.extend([output async for output in writer.open(request)])

    check(main)
    assert sum(isinstance(output, UsageSoFar) for output in outputs) >= 2


def test_a_server_that_calls_though_it_must_not_is_not_followed() -> None:
    never = replace(NAMED, tool_choice="none")
    found, bodies = ask(never, calls(event(content="Well."), piece(FITTING)))
    assert found[0] == TextDelta("Well.") and not any(isinstance(o, ToolCallDelta) for o in found)
    assert bodies[0]["tool_choice"] == "none"


def test_a_schema_that_is_none_is_told_before_anything_is_asked() -> None:
    for broken in ("{", '{"type": "nope"}', '{"$ref": "https://example.org/x"}', '"text"'):
        tools = (replace(WEATHER, parameters_json=broken),)
        error, bodies = refused(replace(NAMED, tools=tools), says("Fine."))
        assert error.code == "llm_bad_tool_schema" and bodies == []
