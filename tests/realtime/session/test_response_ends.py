"""Responses end exactly once: completed, cut short, failed, starved or cancelled."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.items import ItemStatus
from realtime.session.notices import (
    ErrorRaised,
    OutputItemDone,
    ResponseCreated,
    ResponseDone,
    ResponseStatus,
)
from realtime.session.states import Speaking
from tests.realtime.session.script import Script

CANCELLED = ResponseStatus.CANCELLED


def ended(script: Script) -> list[tuple[str, str | None]]:
    return [(done.response.status, done.response.reason) for done in script.told(ResponseDone)]


@pytest.mark.parametrize(
    ("reason", "told"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_a_reply_that_was_cut_short_is_incomplete(reason: str, told: str) -> None:
    script = Script()
    script.create()
    script.call("look", "{}", 0, "call_a")
    script.call("find", '{"wh', 1, "call_b")
    script.write("It is")
    script.speak(400)
    script.finish(reason)
    script.wait(1000)
    assert ended(script) == [("incomplete", told)]
    statuses = {done.item.name: done.item.status for done in script.told(OutputItemDone)}
    assert statuses[None] is ItemStatus.INCOMPLETE
    assert statuses["look"] is ItemStatus.COMPLETED
    assert statuses["find"] is ItemStatus.INCOMPLETE, "half a call is none"


def test_what_a_failing_reply_has_spoken_still_leaves() -> None:
    script = Script()
    script.ask()
    script.write("It is noon in")
    script.speak(2500)
    script.fail()
    assert not script.told(ResponseDone)
    script.wait(3000)
    (done,) = script.told(ResponseDone)
    assert (done.response.status, done.response.error_code) == ("failed", "llm_unreachable")
    assert done.response.output[0].parts[0].audio_ms == 2500
    assert script.told(ErrorRaised)[0].type == "server_error"
    assert script.speaking is Speaking.IDLE
    script.ask()
    assert script.speaking is Speaking.WAITING, "the session lives on"


def test_a_reply_that_fails_while_held_fails_when_it_is_released() -> None:
    script = Script()
    script.ask()
    script.write("It is noon in")
    script.speak(400)
    script.say(32)
    script.fail()
    assert script.speaking is Speaking.HELD
    script.silence(96)
    script.wait(1000)
    assert [status for status, _ in ended(script)] == ["failed"]


def test_a_model_that_never_answers_fails_the_response_in_time() -> None:
    script = Script()
    script.create()
    script.wait(44_999)
    assert script.speaking is Speaking.WAITING
    script.wait(1)
    assert script.told(ResponseDone)[0].response.error_code == "reply_timeout"
    assert not script.works


@pytest.mark.parametrize("rest_ms", [0, 10])
def test_a_reply_that_stops_in_the_middle_fails_in_time(rest_ms: int) -> None:
    """Less than a frame of audio waits for more, and is no sign of life."""
    script = Script()
    script.create()
    script.write("It is noon in")
    script.speak(400 + rest_ms)
    script.wait(15_500)
    assert script.told(ResponseDone)[0].response.error_code == "reply_stalled"
    assert not script.works and not script.egress.replies


def test_a_model_that_counts_its_tokens_is_at_work_though_it_shows_nothing() -> None:
    """Arguments that must be judged, or that wait for another call, are told at their end."""
    script = Script()
    script.create()
    script.write("Let me look.")
    script.speak(400)
    for written in range(10):
        script.wait(10_000)
        script.step(ev.ReplyUsage(script.reply, 20, 0, written))
    assert not script.told(ResponseDone)
    script.call("look", "{}")
    script.finish("tool_calls")
    script.wait(1000)
    assert ended(script) == [("completed", None)]


def test_a_long_reply_that_was_made_at_once_is_not_starved() -> None:
    script = Script()
    script.create()
    script.write("A long story.")
    script.speak(40_000)
    script.wait(38_000)
    script.finish()
    script.wait(4000)
    assert ended(script) == [("completed", None)]


# ---- cancel ------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [Speaking.WAITING, Speaking.SPEAKING, Speaking.HELD])
def test_cancel_ends_a_running_response(state: Speaking) -> None:
    script = Script()
    script.ask()
    late = script.reply
    if state is not Speaking.WAITING:
        script.write("It is noon.")
        script.speak(3000)
    if state is Speaking.HELD:
        script.say(32)
    assert script.speaking is state
    script.cancel(script.told(ResponseCreated)[0].response.id)
    assert ended(script) == [(CANCELLED, "client_cancelled")]
    assert script.speaking is Speaking.IDLE and not script.works
    before = len(script.notices)
    script.step(ev.ReplyText(late, "late"))
    script.step(ev.ReplyAudio(late, 24_000, 4))
    script.step(ev.ReplyFinished(late, "stop"))
    script.wait(5000)
    assert len(script.notices) == before


@pytest.mark.parametrize("state", [Speaking.IDLE, Speaking.TAIL, Speaking.HELD_TAIL])
def test_cancel_without_a_running_response_is_refused(state: Speaking) -> None:
    script = Script()
    if state is not Speaking.IDLE:
        script.ask()
        script.answer("It is noon.", 900)
        script.silence(32)
    if state is Speaking.HELD_TAIL:
        script.say(32)
    assert script.speaking is state
    script.cancel()
    (error,) = script.told(ErrorRaised)
    assert (error.code, error.client_event_id) == ("response_cancel_not_active", "e_cancel")
    assert script.speaking is state
    assert not script.done(fx.CutLane)


def test_cancel_of_another_response_leaves_the_running_one_alone() -> None:
    script = Script()
    script.ask()
    script.cancel("resp_x")
    assert script.told(ErrorRaised) and not script.told(ResponseDone)


@pytest.mark.parametrize("state", [Speaking.TAIL, Speaking.HELD_TAIL])
def test_a_response_may_be_created_while_the_last_one_still_sounds(state: Speaking) -> None:
    script = Script()
    script.ask()
    script.answer("It is noon.", 900)
    script.silence(32)
    if state is Speaking.HELD_TAIL:
        script.say(32)
    assert script.speaking is state
    script.create()
    script.silence(96)
    script.answer("And sunny.", 900)
    script.wait(3000)
    assert ended(script) == [("completed", None)] * 2
    first, second = [script.egress.heard[item_id] for item_id in script.item_ids[1:]]
    assert second.played[0][0] >= sum(first.played[-1][:1]), "one plays behind the other"
    assert script.speaking is Speaking.IDLE
