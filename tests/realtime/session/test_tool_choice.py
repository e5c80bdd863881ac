"""What a client chooses of tools and of the length of prompts reaches the writer, or is refused."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.items import ItemStatus
from realtime.session.notices import (
    ArgumentsDelta,
    ArgumentsDone,
    ErrorRaised,
    OutputItemDone,
    ResponseCreated,
    ResponseDone,
    SessionUpdated,
)
from realtime.session.settings import Tool, ToolChoice, ToolMode, Truncation, TruncationMode
from tests.realtime.session.script import Script, text_only

LOOK = Tool("look", "Look.", "{}", "{}")
FIND = Tool("find", "Find.", "{}", "{}")
NAMED = ToolChoice(ToolMode.FUNCTION, "look")


# ---- unknown functions -------------------------------------------------------------------------


def test_a_session_cannot_choose_a_function_that_it_has_not() -> None:
    script = Script()
    script.update(tool_choice=NAMED, instructions="Be brief.")
    (error,) = script.told(ErrorRaised)
    assert (error.code, error.param) == ("invalid_value", "session.tool_choice")
    assert "'look'" in error.message and error.client_event_id == "e_update"
    assert script.machine.ctx.settings.instructions == "", "a refused update has no effect"
    assert not script.told(SessionUpdated)
    script.update(tool_choice=NAMED, tools=(LOOK,))
    assert script.machine.ctx.settings.tool_choice == NAMED


def test_a_chosen_function_cannot_be_taken_away_alone() -> None:
    script = Script()
    script.update(tool_choice=NAMED, tools=(LOOK, FIND))
    script.update(tools=(FIND,))
    assert script.told(ErrorRaised)[0].param == "session.tools"
    assert script.machine.ctx.settings.tools == (LOOK, FIND)
    script.update(tools=(), tool_choice=ToolChoice())
    assert script.machine.ctx.settings.tools == ()


@pytest.mark.parametrize("out_of_band", [False, True])
def test_a_response_cannot_choose_a_function_that_it_has_not(out_of_band: bool) -> None:
    script = Script()
    script.update(tools=(FIND,))
    script.create(tool_choice=NAMED, out_of_band=out_of_band)
    script.create(tool_choice=ToolChoice(ToolMode.FUNCTION, "find"), tools=(), input=())
    errors = script.told(ErrorRaised)
    assert [error.param for error in errors] == ["response.tool_choice"] * 2
    assert not script.told(ResponseCreated)
    script.create(tool_choice=NAMED, tools=(LOOK,), out_of_band=out_of_band)
    assert script.done(fx.StartReply)[0].tool_choice == NAMED


def test_own_tools_without_the_session_s_choice_are_refused() -> None:
    script = Script()
    script.update(tool_choice=NAMED, tools=(LOOK,))
    script.create(tools=(FIND,))
    assert script.told(ErrorRaised)[0].param == "response.tools"
    script.create(tools=(FIND,), tool_choice=ToolChoice(ToolMode.REQUIRED))
    assert script.done(fx.StartReply)[0].tools == (FIND,)


# ---- what reaches the writer -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("session", "response", "wanted"),
    [
        (None, None, True),
        (False, None, False),
        (True, False, False),
        (False, True, True),
        (None, False, False),
    ],
)
def test_parallel_calls_are_the_response_s_choice_before_the_session_s(
    session: bool | None, response: bool | None, wanted: bool
) -> None:
    script = Script()
    if session is not None:
        script.update(parallel_tool_calls=session)
    script.create(parallel_tool_calls=response)
    assert script.done(fx.StartReply)[0].parallel_tool_calls is wanted


def test_truncation_holds_for_replies_drafts_side_responses_and_what_is_read_ahead() -> None:
    truncation = Truncation(TruncationMode.RETENTION_RATIO, 0.5, 2000)
    script = Script(drafts=True)
    script.update(truncation=truncation, instructions="Be brief.")
    script.ask()
    script.create(out_of_band=True)
    works = [*script.done(fx.StartReply), *script.done(fx.PrepareReply)]
    assert len(works) >= 3 and any(work.draft for work in script.done(fx.StartReply))
    assert {work.truncation for work in works} == {truncation}


def test_another_truncation_makes_a_draft_stale() -> None:
    script = Script(drafts=True)
    script.say(640)
    script.silence(256)
    assert any(work.draft for work in script.live(fx.StartReply))
    script.update(truncation=Truncation(TruncationMode.DISABLED))
    assert not script.live(fx.StartReply)


# ---- calls in the course of a response ---------------------------------------------------------


def test_arguments_are_told_as_they_are_written() -> None:
    script = Script(settings=text_only(turn_detection=None))
    script.create()
    for piece in ('{"ci', 'ty": "L', 'isbon"}'):
        script.call("look", piece)
    assert [d.delta for d in script.told(ArgumentsDelta)] == ['{"ci', 'ty": "L', 'isbon"}']
    assert not script.told(ArgumentsDone)
    script.finish("tool_calls")
    assert script.told(ArgumentsDone)[0].arguments == '{"city": "Lisbon"}'


@pytest.mark.parametrize("written", ["", "{", '{"city": "Lis'])
def test_a_call_that_was_cut_at_the_limit_is_incomplete_with_what_was_sent(written: str) -> None:
    script = Script()
    script.create(max_output_tokens=1)
    script.call("look", written)
    script.finish("length")
    (done,) = script.told(OutputItemDone)
    assert (done.item.status, done.item.arguments) == (ItemStatus.INCOMPLETE, written)
    response = script.told(ResponseDone)[0].response
    assert (response.status, response.reason) == ("incomplete", "max_output_tokens")
    assert response.max_output_tokens == 1
    assert not script.machine.ctx.tools.is_waiting, "nobody has to answer half a call"
    script.create()
    assert not script.done(fx.StartReply)[1].messages, "and no prompt shows it"


@pytest.mark.parametrize("ending", ["fail", "cancel"])
def test_a_call_that_was_broken_off_is_incomplete(ending: str) -> None:
    script = Script()
    script.create()
    script.call("look", '{"city"')
    script.fail() if ending == "fail" else script.cancel()
    (done,) = script.told(OutputItemDone)
    assert (done.item.status, done.item.arguments) == (ItemStatus.INCOMPLETE, '{"city"')


@pytest.mark.parametrize("step", range(5))
def test_a_tool_s_output_may_come_at_any_moment(step: int) -> None:
    """While the call's own response is spoken, when it has ended, or in the next one."""
    script = Script()
    script.create()
    script.write("Let me look.")
    script.speak(2000)
    script.call("look", "{}")
    script.call("find", "{}", 1, "call_b")  # the first is whole once the second begins
    moments = [
        lambda: script.wait(100),
        lambda: script.finish("tool_calls"),
        lambda: script.wait(3000),
        lambda: script.create(),
        lambda: script.answer("It is fine.", 400),
    ]
    for number, moment in enumerate(moments):
        if number == step:
            script.output("call_a", "sunny")
        moment()
    script.wait(3000)
    if step == 4:
        script.create()
    assert ("tool", "sunny") in script.prompt
    assert not script.told(ErrorRaised)


def test_the_next_response_while_the_last_one_speaks_is_refused_and_then_made() -> None:
    script = Script()
    script.create()
    script.write("Let me look.")
    script.speak(2000)
    script.call("look", "{}")
    script.finish("tool_calls")
    script.output("call_a", "sunny")
    script.create()
    (error,) = script.told(ErrorRaised)
    assert error.code == "conversation_already_has_active_response"
    assert error.client_event_id == "e_create"
    assert len(script.told(ResponseCreated)) == 1
    script.wait(2500)
    script.create()
    assert len(script.told(ResponseCreated)) == 2
    assert ("tool", "sunny") in script.prompt


def test_usage_alone_shows_nothing() -> None:
    script = Script()
    script.create()
    before = len(script.notices)
    script.step(ev.ReplyUsage(script.reply, 10, 0, 0))
    assert len(script.notices) == before
