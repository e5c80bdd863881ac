"""A session opens, may lose its client for a while, and ends with nothing left behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.notices import (
    InputCommitted,
    ResponseCreated,
    ResponseDone,
    SessionCreated,
    SpeechStarted,
)
from realtime.session.settings import SemanticVad, ServerVad, SessionSettings
from realtime.session.states import Lifecycle, Listening, Speaking
from tests.realtime.session.script import Script
from tests.realtime.session.soundness import check

OPENED = ev.Opened(1, SessionSettings(), "browser", False, 0)


def in_onset(script: Script) -> None:
    script.say(32)


def in_turn(script: Script) -> None:
    script.say(640)


def in_judged_pause(script: Script) -> None:
    script.say(640)
    script.silence(256)


def awaiting_text(script: Script) -> None:
    script.hears = None
    script.ask()


def waiting(script: Script) -> None:
    script.create()


def speaking(script: Script) -> None:
    script.create()
    script.write("It is noon.")
    script.speak(5000)


def held(script: Script) -> None:
    speaking(script)
    script.say(32)


def in_tail(script: Script) -> None:
    script.create()
    script.answer("It is noon.", 900)


def beside_the_conversation(script: Script) -> None:
    script.create(out_of_band=True)
    script.create(out_of_band=True)
    script.write("A note.")
    script.speak(5000)


def with_a_tool_pending(script: Script) -> None:
    script.create()
    script.call("look", "{}")
    script.finish("tool_calls")


MOMENTS = [
    in_onset,
    in_turn,
    in_judged_pause,
    awaiting_text,
    waiting,
    speaking,
    held,
    in_tail,
    beside_the_conversation,
    with_a_tool_pending,
]


def begun(moment: Callable[[Script], None]) -> Script:
    script = Script(SemanticVad(), drafts=True, judges=None)
    moment(script)
    script.after_step = lambda: check(script)
    return script


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("is_parked_first", [False, True])
def test_a_session_that_ends_leaves_nothing(
    moment: Callable[[Script], None], is_parked_first: bool
) -> None:
    script = begun(moment)
    if is_parked_first:
        script.step(ev.Disconnected(resumable=True))
    script.step(ev.Disconnected())
    assert script.machine.lifecycle is Lifecycle.CLOSED
    assert isinstance(script.effects[-1], fx.CloseTransport)
    for event in (OPENED, ev.Disconnected(True), ev.Disconnected(), ev.Reconnected()):
        assert script.step(event) == []
    assert script.step(ev.ShutDown(10_000)) == script.step(ev.Tick()) == []


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_lost_client_ends_all_that_is_under_way_and_finds_its_conversation_again(
    moment: Callable[[Script], None],
) -> None:
    script = begun(moment)
    items, late = script.item_ids, dict(script.works)
    script.step(ev.Disconnected(resumable=True))
    assert script.states[:3] == (Lifecycle.PARKED, Listening.QUIET, Speaking.IDLE)
    assert fx.ResetHearing() in script.effects
    for request in late:
        script.step(ev.ReplyAudio(request, 24_000, 3))
        script.step(ev.TranscriptFinal(request, "late"))
    script.wait(59_000)
    script.step(ev.Reconnected())
    assert script.machine.lifecycle is Lifecycle.LIVE
    assert len(script.told(SessionCreated)) == 2
    assert script.item_ids == items
    script.hears = "Hello again"
    before = len(script.told(InputCommitted))
    script.say(640)
    script.silence(5000)
    assert len(script.told(InputCommitted)) == before + 1


def test_a_client_lost_in_the_tail_hears_no_more_of_it() -> None:
    script = Script()
    in_tail(script)
    script.step(ev.Disconnected(resumable=True))
    assert len(script.done(fx.CutLane)) == 1
    script.step(ev.Reconnected())
    assert script.prompt == []


def test_resuming_repeats_nothing_that_was_heard() -> None:
    script = Script()
    script.ask()
    script.write("one two three four five six seven eight nine ten")
    script.speak(5000)
    script.silence(2080)
    (item_id,) = script.item_ids[1:]
    sent = script.egress.heard[item_id].sent
    script.step(ev.Disconnected(resumable=True))
    script.wait(1000)
    script.step(ev.Reconnected())
    script.wait(5000)
    assert script.egress.heard[item_id].sent - sent <= 120, "the fade alone"
    assert [done.response.status for done in script.told(ResponseDone)] == ["cancelled"]
    assert script.prompt[-2] == ("assistant", "one two three four")


def test_push_to_talk_goes_on_after_a_resumption() -> None:
    script = Script(None)
    script.say(640)
    script.step(ev.Disconnected(resumable=True))
    script.step(ev.Reconnected())
    script.say(320)
    script.commit()
    (heard,) = script.done(fx.Recognise)
    assert (heard.start, heard.end) == (640 * 16, 960 * 16)


def test_a_parked_session_closes_when_nobody_comes_back() -> None:
    script = Script()
    script.step(ev.Disconnected(resumable=True))
    script.wait(59_999)
    assert script.machine.lifecycle is Lifecycle.PARKED
    script.wait(1)
    assert script.machine.lifecycle is Lifecycle.CLOSED


def test_three_lost_connections_double_nothing() -> None:
    script = Script()
    for _ in range(3):
        script.ask()
        script.answer()
        script.wait(1000)
        script.step(ev.Disconnected(resumable=True))
        script.step(ev.Reconnected())
    script.ask()
    assert len(script.told(SpeechStarted)) == len(script.told(ResponseCreated)) == 4


# ---- shutting down -----------------------------------------------------------------------------


def test_a_server_that_stops_lets_the_reply_be_heard_out() -> None:
    script = Script()
    script.ask()
    script.answer("It is noon.", 3000)
    script.step(ev.ShutDown(10_000))
    script.step(ev.ShutDown(10_000))
    assert script.machine.lifecycle is Lifecycle.DRAINING
    script.wait(2500)
    assert script.machine.lifecycle is Lifecycle.DRAINING
    script.wait(1000)
    assert script.machine.lifecycle is Lifecycle.CLOSED
    assert script.told(ResponseDone)[0].response.status == "completed"


def test_a_server_that_stops_waits_no_longer_than_it_must() -> None:
    script = Script()
    script.ask()
    script.step(ev.ShutDown(5000))
    script.wait(4999)
    assert script.machine.lifecycle is Lifecycle.DRAINING
    script.wait(1)
    assert script.machine.lifecycle is Lifecycle.CLOSED
    assert script.told(ResponseDone)[0].response.status == "cancelled"


def test_an_interruption_ends_a_draining_session() -> None:
    script = Script()
    script.ask()
    script.write("It is noon.")
    script.speak(5000)
    script.step(ev.ShutDown(10_000))
    script.say(160)
    assert script.machine.lifecycle is Lifecycle.CLOSED
    check(script)


@pytest.mark.parametrize("is_resumable", [True, False])
def test_a_client_that_leaves_a_draining_session_ends_it(is_resumable: bool) -> None:
    script = Script()
    script.ask()
    script.step(ev.ShutDown(10_000))
    for event in (OPENED, ev.Reconnected()):
        assert script.step(event) == []
    script.step(ev.Disconnected(is_resumable))
    assert script.machine.lifecycle is Lifecycle.CLOSED


def test_a_quiet_or_parked_session_closes_at_once() -> None:
    quiet = Script()
    quiet.step(ev.ShutDown(10_000))
    parked = Script()
    parked.step(ev.Disconnected(resumable=True))
    assert parked.step(OPENED) == []
    parked.step(ev.ShutDown(10_000))
    assert quiet.machine.lifecycle is parked.machine.lifecycle is Lifecycle.CLOSED


def test_a_live_session_neither_opens_nor_comes_back() -> None:
    script = Script()
    assert script.step(OPENED) == script.step(ev.Reconnected()) == []


@pytest.mark.parametrize("event", [ev.Disconnected(True), ev.Disconnected(), ev.ShutDown(10_000)])
def test_a_session_that_never_opened_only_closes(event: ev.Event) -> None:
    script = Script(is_open=False)
    assert script.step(ev.Reconnected()) == []
    assert script.step(ev.AudioFrame(512, 0.9, -30.0)) == []
    assert [type(effect) for effect in script.step(event)] == [fx.CloseTransport]
    assert script.machine.lifecycle is Lifecycle.CLOSED


def test_unknown_profiles_are_browsers_and_phones_need_surer_speech() -> None:
    settings = SessionSettings(turn_detection=ServerVad())
    confirmed_ms = {}
    for profile in ("browser", "phone"):
        script = Script(settings=settings, profile=profile)
        script.create()
        script.write("It is noon.")
        script.speak(5000)
        before = script.position
        while not script.told(SpeechStarted):
            script.say(32)
        confirmed_ms[profile] = (script.position - before) // 16
    assert confirmed_ms == {"browser": 128, "phone": 160}
