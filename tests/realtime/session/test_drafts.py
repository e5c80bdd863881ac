"""Replies begun in a pause: invisible until the turn ends, dead as soon as anything changes."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.notices import ErrorRaised, ResponseCreated, ResponseDone
from realtime.session.settings import SemanticVad, ServerVad
from realtime.session.states import Drafting, Speaking
from tests.realtime.session.script import Script


def drafting() -> Script:
    """A pause in which a draft runs and has made text and sound."""
    script = Script(SemanticVad(), drafts=True, judges=None)
    script.say(640)
    script.silence(160)
    assert script.drafting is Drafting.RUNNING
    script.write("It is noon.")
    script.speak(800)
    return script


def test_a_draft_begins_120_ms_after_the_voice_with_the_text_of_the_turn() -> None:
    script = Script(SemanticVad(), drafts=True, judges=None)
    script.say(640)
    script.silence(96)
    assert not script.done(fx.StartReply)
    script.silence(32)
    (started,) = script.done(fx.StartReply)
    assert started.draft and script.prompt == [("user", "What time is it?")]


def test_a_draft_waits_for_the_text_of_the_turn() -> None:
    script = Script(SemanticVad(), drafts=True, judges=None, hears=None)
    script.say(640)
    script.silence(320)
    assert not script.done(fx.StartReply)
    script.hear("What time is it?")
    assert script.drafting is Drafting.RUNNING


def test_nothing_of_a_draft_is_seen() -> None:
    script = drafting()
    script.call("look", "{}")
    script.finish("tool_calls")
    assert script.names() == ["SessionCreated", "SpeechStarted"]
    assert not script.done(fx.PlayReply)


def test_the_draft_of_the_turn_becomes_its_answer_and_leaves_at_once() -> None:
    script = drafting()
    draft = script.reply
    script.silence(64)
    script.verdict(1.0)
    script.silence(448)
    assert fx.AdoptReply(draft) in script.effects
    assert script.speaking is Speaking.SPEAKING
    assert script.egress.heard, "sound leaves in the same step"
    assert len(script.done(fx.StartReply)) == 1
    script.finish()
    script.wait(2000)
    timeline = script.done(fx.Observe)[-1].timeline
    assert timeline.drafted and timeline.turn == 1


def test_a_finished_draft_of_calls_alone_is_a_whole_response() -> None:
    script = Script(SemanticVad(), drafts=True, judges=None)
    script.say(640)
    script.silence(480)
    script.call("look", "{}")
    script.finish("tool_calls")
    script.verdict(1.0)
    script.silence(448)
    (done,) = script.told(ResponseDone)
    assert done.response.status == "completed" and done.response.output[0].name == "look"


def test_speech_that_goes_on_kills_the_draft_and_another_answers_the_whole() -> None:
    script = drafting()
    draft = script.reply
    script.say(128)
    assert fx.Abort(draft) in script.effects and script.drafting is Drafting.NONE
    script.hears = "What time is it in Rome?"
    script.silence(160)
    assert script.drafting is Drafting.RUNNING
    assert script.prompt == [("user", "What time is it in Rome?")]
    script.step(ev.ReplyAudio(draft, 24_000, 3))
    assert not script.done(fx.PlayReply)


def test_a_click_leaves_the_draft_alone() -> None:
    script = drafting()
    script.click()
    assert script.drafting is Drafting.RUNNING
    assert len(script.done(fx.StartReply)) == 1


@pytest.mark.parametrize(
    "change",
    ["type", "delete", "truncate", "update", "clear", "commit", "switch", "disconnect"],
)
def test_whatever_changes_the_prompt_kills_the_draft(change: str) -> None:
    script = Script(SemanticVad(), drafts=True, judges=0.9)
    script.ask()
    script.answer("It is noon.", 400)
    script.wait(2000)
    assert script.speaking is Speaking.IDLE
    script.judges = None
    script.say(640)
    script.silence(160)
    draft = script.reply
    match change:
        case "type":
            script.type("In Rome, I mean.")
        case "delete":
            script.delete(script.item_ids[0])
        case "truncate":
            script.truncate(script.item_ids[1], 100)
        case "update":
            script.update(instructions="Be brief.")
        case "clear":
            script.clear()
        case "commit":
            script.commit()
        case "switch":
            script.update(turn_detection=None)
        case _:
            script.step(ev.Disconnected(resumable=True))
    assert fx.Abort(draft) in script.effects
    assert script.drafting is Drafting.NONE


def test_an_answer_to_a_stale_draft_starts_afresh() -> None:
    script = drafting()
    script.type("In Rome, I mean.")
    script.silence(64)
    script.verdict(1.0)
    script.silence(448)
    started = script.done(fx.StartReply)
    assert [s.draft for s in started] == [True, False]
    assert script.told(ResponseCreated)


def test_a_failing_draft_is_silent_and_the_turn_gets_its_own_reply() -> None:
    script = drafting()
    script.fail()
    assert not script.told(ErrorRaised)
    script.silence(64)
    script.verdict(1.0)
    script.silence(448)
    assert script.speaking is Speaking.WAITING and not script.done(fx.StartReply)[1].draft


def test_no_draft_is_made_while_a_response_runs() -> None:
    script = Script(ServerVad(interrupt_response=False), drafts=True)
    script.ask()
    script.answer("It is noon.", 6000)
    script.ask()
    assert len(script.done(fx.StartReply)) == 1


def test_a_response_of_the_client_in_the_pause_leaves_no_draft_behind() -> None:
    script = drafting()
    draft = script.reply
    script.create()
    script.answer("Hello there.", 400)
    assert fx.Abort(draft) in script.effects


def test_a_turn_that_queues_behind_a_response_takes_no_draft_with_it() -> None:
    script = drafting()
    script.create()
    script.silence(64)
    script.verdict(1.0)
    script.silence(448)
    assert script.drafting is Drafting.NONE
    assert len(script.told(ResponseCreated)) == 1


def test_drafts_can_be_off() -> None:
    script = Script(SemanticVad(), drafts=False, judges=0.1)
    script.say(640)
    script.silence(800)
    assert not script.done(fx.StartReply)
