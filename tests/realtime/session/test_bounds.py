"""What one client may put into its session, and how it is told of too much."""

from __future__ import annotations

import pytest

from realtime.session import events as ev
from realtime.session.bounds import Bounds
from realtime.session.notices import ErrorRaised, ItemAdded, ResponseCreated, SessionUpdated
from realtime.session.settings import SessionSettings, Tool
from tests.realtime.session.script import Script

BOUNDS = Bounds(items=3, instruction_characters=20, tools=2, tool_characters=30)
TEXT = "x" * 20


def tool(wire_json: str = "{}") -> Tool:
    return Tool("look", "", "{}", wire_json)


def opened() -> Script:
    script = Script(is_open=False)
    settings = SessionSettings(turn_detection=None, instructions="y" * 50)
    script.step(ev.Opened(7, settings, "browser", False, 0, bounds=BOUNDS))
    return script


def refusals(script: Script) -> list[tuple[str | None, str | None, str | None]]:
    return [(e.code, e.param, e.client_event_id) for e in script.told(ErrorRaised)]


def test_a_full_conversation_takes_no_item_until_one_is_deleted() -> None:
    script = opened()
    for number in range(4):
        script.type(f"line {number}", f"item_{number}")
    assert refusals(script) == [("conversation_full", "item", "e_item")]
    assert len(script.told(ItemAdded)) == 3
    script.delete("item_0")
    script.type("line 4", "item_4")
    assert len(script.told(ItemAdded)) == 4


def test_long_instructions_are_refused_whole() -> None:
    script = opened()
    script.update(instructions=TEXT + "x", voice="bass")
    assert refusals(script) == [
        ("string_above_max_length", "session.instructions", "e_update"),
    ]
    assert script.told(ErrorRaised)[0].message == (
        "Invalid 'session.instructions': string too long. Expected a string with maximum length "
        "20, but got a string with length 21 instead."
    )
    assert script.machine.ctx.settings.voice != "bass"
    script.update(instructions=TEXT)
    assert len(script.told(SessionUpdated)) == 1


def test_an_operators_own_instructions_may_be_longer() -> None:
    script = opened()
    script.update(voice="bass")
    assert not refusals(script)


@pytest.mark.parametrize(
    ("tools", "code"),
    [
        ((tool(), tool(), tool()), "array_above_max_length"),
        ((tool("x" * 16), tool("x" * 15)), "string_above_max_length"),
        ((tool("x" * 15), tool("x" * 15)), None),
    ],
)
def test_tools_are_counted_and_measured(tools: tuple[Tool, ...], code: str | None) -> None:
    script = opened()
    script.update(tools=tools)
    assert refusals(script) == ([(code, "session.tools", "e_update")] if code else [])


def test_a_response_has_the_same_bounds() -> None:
    script = opened()
    script.create(instructions=TEXT + "x")
    script.create(tools=(tool(), tool(), tool()))
    assert refusals(script) == [
        ("string_above_max_length", "response.instructions", "e_create"),
        ("array_above_max_length", "response.tools", "e_create"),
    ]
    assert not script.told(ResponseCreated)
