"""What one client may put into its session, and how it is told of too much."""

from __future__ import annotations

import pytest

from realtime.session import events as ev
from realtime.session.bounds import Bounds
from realtime.session.notices import ErrorRaised, ItemAdded, ResponseCreated, SessionUpdated
from realtime.session.settings import (
    ECHOED,
    SessionSettings,
    SettingsPatch,
    Tool,
    ToolChoice,
    ToolMode,
    Transcription,
)
from realtime.session.tools import unknown_tool
from tests.realtime.session.script import Script

BOUNDS = Bounds(
    items=3, instruction_characters=20, tools=2, tool_characters=30, echoed_characters=40
)
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


def echo(script: Script, **texts: str) -> None:
    pairs = tuple((f"{ECHOED}{name}", text) for name, text in texts.items())
    script.step(ev.ClientSessionUpdate("e_update", SettingsPatch(pairs)))


def test_what_is_only_sent_back_adds_up_over_updates() -> None:
    script = opened()
    echo(script, tracing="t" * 15)
    echo(script, reasoning="r" * 15)
    before = script.machine.ctx.settings
    assert not refusals(script)
    for field in ("model", "language", "prompt", "extra_json"):
        heard = Transcription(**{"model": "", "extra_json": "", field: "x" * 11})
        script.update(transcription=heard, voice="bass")
        echo(script, include="i" * 11)
        assert refusals(script)[-2:] == [
            ("invalid_value", "session.audio.input.transcription", "e_update"),
            ("invalid_value", "session.include", "e_update"),
        ]
    echo(script, tracing="t" * 20, include="i" * 20)
    assert refusals(script)[-1] == ("invalid_value", "session", "e_update")
    assert "at most 40 characters" in script.told(ErrorRaised)[-1].message
    assert script.machine.ctx.settings == before, "an update counts whole or not at all"
    echo(script, tracing="null", include="i" * 20)
    assert len(refusals(script)) == 9, "what is cleared makes room"


def test_the_name_of_a_chosen_tool_is_sent_back_too() -> None:
    script = opened()
    choice = ToolChoice(ToolMode.FUNCTION, "x" * 41)
    script.update(tools=(Tool("x" * 41, "", "{}", "{}"),), tool_choice=choice)
    assert refusals(script) == [("invalid_value", "session.tool_choice", "e_update")]


def test_a_session_of_default_bounds_is_small_enough_to_be_sent() -> None:
    script = Script()
    echo(script, tracing="t" * 40_000)
    echo(script, reasoning="r" * 40_000)
    assert refusals(script) == [("invalid_value", "session.reasoning", "e_update")]


def test_an_unknown_choice_is_told_in_few_words() -> None:
    tools = tuple(Tool(f"{number}{'x' * 127}", "", "{}", "{}") for number in range(128))
    why = unknown_tool(ToolChoice(ToolMode.FUNCTION, "y" * 1_000_000), tools)
    assert why is not None and len(why) < 1000
    assert "and 120 more" in why
    assert unknown_tool(ToolChoice(ToolMode.FUNCTION, "look"), (tool(),)) is None
