"""An event of many faults or many marks costs no more to refuse than one of few."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from realtime.protocol.decode import decode
from realtime.protocol.event_schema import EVENT_SCHEMAS
from realtime.protocol.item_schema import MAX_PARTS
from realtime.protocol.json_text import MAX_DEPTH, MAX_MARKS
from realtime.session.events import ClientItemCreate, ClientRefused

MANY = 40_000
NUMBERED = {f"x{number}": 1 for number in range(MANY)}
ONES = [1] * MANY
MOST_FAULTS = 20  # one for each field of the largest object


def update(**session: Any) -> dict[str, Any]:
    return {"type": "session.update", "session": {"type": "realtime", **session}}


def message(content: list[Any], role: str = "user") -> dict[str, Any]:
    item = {"type": "message", "role": role, "content": content}
    return {"type": "conversation.item.create", "item": item}


def answer_of(output: str) -> str:
    item = {"type": "function_call_output", "call_id": "call_1", "output": output}
    return json.dumps({"type": "conversation.item.create", "item": item})


def hearing(**transcription: Any) -> dict[str, Any]:
    return update(audio={"input": {"transcription": transcription}})


def faults(error: ValidationError) -> int:
    """How many are rendered to tell of the first."""
    details = error.errors(include_url=False)
    causes = [entry.get("ctx", {}).get("error") for entry in details]
    return len(details) + sum(faults(why) for why in causes if isinstance(why, ValidationError))


@pytest.mark.parametrize(
    ("event", "param"),
    [
        (message(ONES), "item.content[0]"),
        (message(ONES, "system"), "item.content[0]"),
        (message(ONES, "assistant"), "item.content[0]"),
        (message([{"type": "input_text", "text": "", **NUMBERED}]), "item.content[0].x0"),
        ({"type": "response.create", "response": {"input": ONES}}, "response.input[0]"),
        ({"type": "response.create", "response": {"metadata": NUMBERED}}, "response.metadata"),
        ({"type": "response.create", **NUMBERED}, "x0"),
        (update(include=ONES), "session.include[0]"),
        (update(tools=[1] * 128), "session.tools[0]"),
        (update(**NUMBERED), "session.x0"),
        (update(tracing=NUMBERED), "session.tracing.x0"),
        (hearing(keywords=ONES), "session.audio.input.transcription.keywords[0]"),
        (hearing(languages=ONES), "session.audio.input.transcription.languages[0]"),
    ],
)
def test_no_more_faults_are_looked_for_than_are_told(event: dict[str, Any], param: str) -> None:
    with pytest.raises(ValidationError) as raised:
        EVENT_SCHEMAS[event["type"]].model_validate(event)
    assert faults(raised.value) <= MOST_FAULTS
    answer = decode(json.dumps(event))
    assert isinstance(answer, ClientRefused) and answer.param == param


def test_a_message_has_so_many_parts() -> None:
    part = {"type": "input_text", "text": ""}
    assert isinstance(decode(json.dumps(message([part] * MAX_PARTS))), ClientItemCreate)
    answer = decode(json.dumps(message([part] * (MAX_PARTS + 1))))
    assert isinstance(answer, ClientRefused)
    assert (answer.code, answer.param) == ("invalid_value", "item.content")
    assert f"at most {MAX_PARTS} entries" in answer.message


@pytest.mark.parametrize(
    "output",
    [
        "a,b,c\n" * MAX_MARKS,
        json.dumps([{"a": [1, 2]}] * MAX_MARKS),
        '"a","b"\n' * MAX_MARKS,
        '\\",' * MAX_MARKS,
        "\\" * MAX_MARKS + "," * 2 * MAX_MARKS,
    ],
)
def test_what_a_string_holds_is_no_mark(output: str) -> None:
    """A table as a tool's output is one value, and read as fast as any text."""
    answer = decode(answer_of(output))
    assert isinstance(answer, ClientItemCreate)
    assert answer.item.output == output


def test_valid_json_that_is_too_much_is_not_called_invalid_json() -> None:
    answer = decode(json.dumps({"type": "response.create", "x": [0] * (MAX_MARKS + 2)}))
    assert isinstance(answer, ClientRefused)
    assert (answer.code, answer.param) == ("invalid_value", None)
    assert f"more than {MAX_MARKS} commas" in answer.message


@pytest.mark.parametrize("end", ["", "\\"])
def test_a_string_without_an_end_is_passed_over_once(end: str) -> None:
    """Each quote that it escapes could be a beginning; tried one by one, this takes minutes."""
    answer = decode('{"x":"' + '\\",' * 300_000 + end)
    assert isinstance(answer, ClientRefused) and answer.code == "invalid_json"


def test_depth_is_looked_at_in_large_events_too() -> None:
    inside = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    answer = decode(f'{{"type":"x","y":"{"," * MAX_MARKS}","z":{inside}}}')
    assert isinstance(answer, ClientRefused)
    assert answer.code == "invalid_json" and "levels deep" in answer.message
