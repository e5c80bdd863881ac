"""Calls arrive whole and one after another, however a server cuts and numbers their pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.stages.llm_openai_wire import Answer, Nonsense
from pipelines.types import FinishReason, TextDelta, ToolCallDelta


def piece(
    arguments: str = "", name: str | None = None, call_id: str | None = None, index: int | None = 0
) -> dict[str, Any]:
    made: dict[str, Any] = {"index": index, "id": call_id, "function": {"arguments": arguments}}
    if name is not None:
        made["function"]["name"] = name
    return {key: value for key, value in made.items() if value is not None}


def read(
    *events: list[dict[str, Any]], reason: str = "tool_calls"
) -> tuple[list[ToolCallDelta], list[ToolCallDelta]]:
    """What leaves as it comes, and what leaves at the end."""
    answer = Answer("r")
    live = [
        output
        for calls in events
        for output in answer.read(json.dumps({"choices": [{"delta": {"tool_calls": calls}}]}))
    ]
    answer.read(json.dumps({"choices": [{"finish_reason": reason}]}))
    return _calls(live), _calls(answer.rest())


def _calls(outputs: list[TextDelta | ToolCallDelta]) -> list[ToolCallDelta]:
    return [output for output in outputs if isinstance(output, ToolCallDelta)]


def joined(*events: list[dict[str, Any]], reason: str = "tool_calls") -> list[tuple[str, str]]:
    """Names and arguments of the calls, as whoever follows the protocol understands them."""
    calls: list[list[str]] = []
    live, rest = read(*events, reason=reason)
    for output in (*live, *rest):
        if output.index == len(calls):
            assert output.name and output.call_id
            calls.append([output.name, ""])
        assert output.index == len(calls) - 1, "one call after another"
        calls[output.index][1] += output.arguments
    return [(name, arguments) for name, arguments in calls]


def test_calls_that_are_written_at_the_same_time_are_kept_apart() -> None:
    events = [
        [piece("", "look", "a", 0)],
        [piece("", "find", "b", 1)],
        [piece('{"x"', index=0)],
        [piece('{"y"', index=1)],
        [piece(":1}", index=0), piece(":2}", index=1)],
    ]
    assert joined(*events) == [("look", '{"x":1}'), ("find", '{"y":2}')]
    live, rest = read(*events)
    assert [output.arguments for output in live] == ["", '{"x"', ":1}"], "the first as it comes"
    assert rest == [ToolCallDelta(1, "b", "find", '{"y":2}')]


@given(st.data())
def test_any_interleaving_gives_the_same_calls(data: st.DataObject) -> None:
    texts = ['{"a":1}', '{"b":[2,3]}', "{}"]
    waiting = [[f"c{at}", *texts[at]] for at in range(3)]
    events: list[list[dict[str, Any]]] = []
    opened: list[int] = []
    while any(waiting):
        at = data.draw(st.sampled_from([at for at in range(3) if waiting[at]]))
        if at not in opened:
            opened.append(at)
            events.append([piece("", f"tool{at}", waiting[at].pop(0), at)])
        else:
            events.append([piece(waiting[at].pop(0), index=at)])
    assert joined(*events) == [(f"tool{at}", texts[at]) for at in opened]


@pytest.mark.parametrize("call_id", [None, "", "same"])
def test_whole_calls_under_one_index_are_as_many_calls(call_id: str | None) -> None:
    wanted = [("look", '{"x":1}'), ("look", '{"x":2}')]
    assert joined(*([piece(arguments, name, call_id)] for name, arguments in wanted)) == wanted
    assert joined([piece(arguments, name, call_id, None) for name, arguments in wanted]) == wanted
    live, rest = read(*([piece(arguments, name, call_id)] for name, arguments in wanted))
    assert len({output.call_id for output in (*live, *rest)}) == 2


def test_a_second_call_under_one_index_may_begin_with_its_name_alone() -> None:
    events = [
        [piece("", "look")],
        [piece('{"x":1}')],
        [piece("", "look")],
        [piece('{"x"')],
        [piece(":2}")],
    ]
    assert joined(*events) == [("look", '{"x":1}'), ("look", '{"x":2}')]
    assert joined(*events[:3]) == [("look", '{"x":1}')], "a name that is only repeated"
    events[2] = [piece("", "find")]
    assert joined(*events) == [("look", '{"x":1}'), ("find", '{"x":2}')]


def test_a_name_in_every_piece_begins_no_call() -> None:
    for call_id in (None, "a"):
        events = ([piece(part, "look", call_id)] for part in ("", '{"x"', ":1", "}", " ", ""))
        assert joined(*events) == [("look", '{"x":1} ')]


def test_a_piece_without_a_name_goes_on_with_its_index_whatever_its_id() -> None:
    events = [[piece("", "look", "a")], [piece('{"x"', None, "b")], [piece(":1}", None, "c")]]
    assert joined(*events) == [("look", '{"x":1}')]


def test_a_call_waits_for_its_name_and_without_one_is_none() -> None:
    late = [[piece('{"x"', None, "a")], [piece("", "look")], [piece(":1}")]]
    assert joined(*late) == [("look", '{"x":1}')]
    assert joined([piece('{"x":1}', None, "a")]) == []
    assert joined([piece("{}", None, "a", 0)], [piece("{}", "look", "b", 1)]) == [("look", "{}")]


@pytest.mark.parametrize("nothing", [{}, {"index": 0}, {"function": None}, {"function": {}}])
def test_an_empty_entry_is_no_call(nothing: dict[str, Any]) -> None:
    assert joined([nothing]) == []
    assert joined([nothing], [piece("{}", "look", "a")], [nothing]) == [("look", "{}")]


def test_a_call_that_takes_nothing_has_an_empty_object() -> None:
    both = [[piece("", "look", "a", 0)], [piece("", "find", "b", 1)]]
    assert joined(*both) == [("look", "{}"), ("find", "{}")]
    assert joined(*both, reason="length") == [("look", "{}"), ("find", "")]
    assert joined(both[0], reason="length") == [("look", "")]
    assert joined(both[0], reason="stop") == [("look", "{}")]


def test_what_is_held_back_counts_and_shows_the_model_at_work() -> None:
    answer = Answer("r")
    for arguments, name, index in (("", "look", 0), ("", "find", 1), ("12345", None, 1)):
        calls = [piece(arguments, name, index=index)]
        answer.read(json.dumps({"choices": [{"delta": {"tool_calls": calls}}]}))
        assert answer.alive
    assert answer.held_chars == 5


@pytest.mark.parametrize(
    "event",
    [
        {"usage": {"prompt_tokens": 3}},
        {"usage": {"prompt_tokens": 3}, "choices": None},
        {"choices": None},
        {"type": "ping"},
    ],
)
def test_an_event_without_choices_may_be_a_count_or_a_sign_of_life(event: dict[str, Any]) -> None:
    answer = Answer("r")
    assert answer.read(json.dumps(event)) == []
    assert answer.usage.input_tokens == (3 if event.get("usage") else 0)
    assert answer.reason is None and answer.ending is FinishReason.STOP


@pytest.mark.parametrize("event", [{}, {"text": "hi"}, {"choices": "none"}, {"type": "message"}])
def test_other_events_without_choices_are_another_protocol(event: dict[str, Any]) -> None:
    with pytest.raises(Nonsense, match="without choices"):
        Answer("r").read(json.dumps(event))
