"""How a small model is told of its tools and of its calls."""

from __future__ import annotations

import pytest

from pipelines.stages.llama_tools import (
    answered,
    as_openai,
    instructions,
    message_as_openai,
    offered,
)
from pipelines.types import Message, ToolCall, ToolSpec

WEATHER = ToolSpec("weather", "of a city", '{"type": "object"}')
CLOCK = ToolSpec("clock", "the time", '{"type": "object"}')


def test_the_choice_of_tools() -> None:
    tools = (WEATHER, CLOCK)
    assert offered(tools, "auto") == offered(tools, "required") == tools
    assert offered(tools, "none") == ()
    assert offered(tools, "clock") == (CLOCK,)


def test_the_form_for_templates() -> None:
    call = ToolCall("c1", "weather", "{}")
    asked = message_as_openai(Message("assistant", "", (call,)))
    assert asked["tool_calls"][0]["function"] == {"name": "weather", "arguments": "{}"}
    assert message_as_openai(Message("tool", "19 C", call_id="c1"))["tool_call_id"] == "c1"
    assert as_openai(WEATHER)["function"]["parameters"] == {"type": "object"}
    assert '"weather"' in instructions((WEATHER,))
    with pytest.raises(ValueError):
        as_openai(ToolSpec("broken", "", "{"))


def test_the_calls_that_the_user_has_not_spoken_since_are_known_by_name_and_value() -> None:
    def called(call_id: str, arguments: str) -> Message:
        return Message("assistant", "", (ToolCall(call_id, "weather", arguments),))

    early = [Message("user", "Rain?"), called("c0", "{}"), Message("tool", "no", call_id="c0")]
    assert len(answered(early)) == 1
    late = [
        Message("user", "And now?"),
        called("c1", '{"a": 1, "b": 2}'),
        Message("tool", "no", call_id="c1"),
        called("c2", '{"b": 2,"a": 1}'),
        Message("tool", "no", call_id="c2"),
        called("c3", "not json"),
    ]
    assert answered([*early, *late]) == {("weather", '{"a": 1, "b": 2}')}
    assert answered([*early, *late, Message("user", "Thanks")]) == set()
