"""Which response answers which turn: never two for one, never none for a question."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.notices import (
    ErrorRaised,
    InputCommitted,
    ResponseCreated,
    ResponseDone,
    SpeechStopped,
)
from realtime.session.settings import ServerVad, SessionSettings, SessionType
from realtime.session.states import Speaking
from tests.realtime.session.script import Script

UNINTERRUPTED = ServerVad(interrupt_response=False)


def test_two_quick_turns_before_the_first_answer_get_one_answer() -> None:
    script = Script(hears=None)
    script.ask()
    script.say(320)
    script.hear("What time is it?")
    assert script.told(InputCommitted) and not script.told(ResponseCreated)
    script.silence(640)
    script.hear("In Rome.")
    assert len(script.told(ResponseCreated)) == 1
    assert script.prompt == [("user", "What time is it?\nIn Rome.")]


def test_a_question_is_answered_though_only_noise_followed_it() -> None:
    script = Script(hears=None)
    script.ask()
    script.say(320)
    script.hear("What time is it?")
    script.silence(640)
    script.hear("")
    assert len(script.told(ResponseCreated)) == 1
    assert script.prompt == [("user", "What time is it?")]


def test_a_question_is_answered_though_the_client_clears_what_followed_it() -> None:
    script = Script(hears=None)
    script.ask()
    script.say(320)
    script.hear("What time is it?")
    script.clear()
    assert len(script.told(ResponseCreated)) == 1
    assert script.prompt == [("user", "What time is it?")]


def test_a_reply_that_the_user_interrupted_stays_cut_when_the_client_clears() -> None:
    script = Script()
    script.ask()
    script.write("Well, it is rather late already.")
    script.speak(4000)
    script.say(320)
    script.clear()
    script.silence(640)
    assert len(script.told(ResponseCreated)) == 1


def test_a_turn_that_ends_during_an_uninterruptible_reply_is_answered_after_it() -> None:
    script = Script(UNINTERRUPTED)
    script.ask()
    script.write("It is noon.")
    script.speak(2000)
    script.ask()
    script.ask()
    script.finish()
    script.wait(5000)
    assert len(script.told(ResponseCreated)) == 2, "one answer for both turns"
    assert script.prompt[-1] == ("user", "What time is it?\nWhat time is it?")


def test_the_queued_answer_starts_while_the_last_reply_still_sounds() -> None:
    script = Script(UNINTERRUPTED)
    script.ask()
    script.answer("It is noon.", 3000)
    script.ask()
    assert not script.told(ResponseCreated)[1:]
    script.wait(800)
    assert script.told(ResponseCreated)[1:]
    assert script.speaking is Speaking.WAITING
    script.wait(5000)
    script.answer()
    script.wait(5000)
    assert script.speaking is Speaking.IDLE


@pytest.mark.parametrize("how", ["empty", "failed", "silent"])
def test_an_answer_that_came_to_nothing_while_the_last_still_sounds_ends_in_its_tail(
    how: str,
) -> None:
    script = Script(UNINTERRUPTED)
    script.ask()
    script.answer("It is noon.", 3000)
    script.ask()
    script.wait(800)
    assert script.speaking is Speaking.WAITING
    match how:
        case "empty":
            script.finish()
        case "failed":
            script.fail()
        case _:
            script.wait(46_000)
    assert script.speaking is (Speaking.IDLE if how == "silent" else Speaking.TAIL)
    script.wait(1000)
    assert script.speaking is Speaking.IDLE
    assert len(script.told(ResponseDone)) == 2


def test_an_interrupted_queue_is_answered_together_with_what_interrupted_it() -> None:
    script = Script(UNINTERRUPTED)
    script.ask()
    script.write("It is noon.")
    script.speak(5000)
    script.ask()
    script.update(turn_detection=ServerVad())
    script.ask()
    assert [done.response.reason for done in script.told(ResponseDone)] == ["turn_detected"]
    assert script.prompt[-1] == ("user", "What time is it?\nWhat time is it?")
    assert len(script.told(ResponseCreated)) == 2


def test_a_cancelled_reply_makes_room_for_the_queued_turn() -> None:
    script = Script(UNINTERRUPTED)
    script.ask()
    script.write("It is noon.")
    script.speak(5000)
    script.ask()
    script.cancel()
    assert script.names()[-2:] == ["ResponseDone", "ResponseCreated"]
    assert script.speaking is Speaking.WAITING


def test_a_queued_answer_is_not_owed_a_second_time() -> None:
    """Turns whose texts come out of order while a reply of the client's runs."""
    script = Script(UNINTERRUPTED, hears=None)
    script.ask()
    script.ask()
    script.create()
    script.write("Hello.")
    script.speak(400)
    first, second = script.live(fx.Recognise)
    del script.works[first.request], script.works[second.request]
    script.step(ev.TranscriptFinal(second.request, "second"))
    script.step(ev.TranscriptFinal(first.request, "first"))
    script.finish()
    script.wait(2000)
    script.answer()
    script.wait(2000)
    script.ask()
    script.hear("")
    assert len(script.told(ResponseCreated)) == 2


def test_without_create_response_a_turn_is_only_committed() -> None:
    script = Script(ServerVad(create_response=False), drafts=True)
    script.ask()
    assert script.told(InputCommitted) and not script.told(ResponseCreated)
    assert not script.done(fx.StartReply)
    script.create()
    assert script.told(ResponseCreated)
    assert script.prompt == [("user", "What time is it?")]


def test_without_both_there_are_only_events() -> None:
    script = Script(ServerVad(create_response=False, interrupt_response=False))
    script.ask()
    script.create()
    script.answer("It is noon.", 4000)
    script.ask()
    assert not script.told(ResponseDone) and len(script.told(InputCommitted)) == 2


def test_a_response_created_while_the_user_talks_is_left_alone() -> None:
    script = Script()
    script.say(320)
    script.create()
    script.answer("Listen.", 400)
    script.silence(640)
    assert script.told(ResponseCreated)[1:]


def test_a_create_that_loses_the_race_is_refused_by_its_event_id() -> None:
    script = Script()
    script.ask()
    running = script.told(ResponseCreated)[0].response.id
    script.create()
    (error,) = script.told(ErrorRaised)
    assert error.code == "conversation_already_has_active_response"
    assert error.client_event_id == "e_create" and running in error.message
    script.answer()
    script.wait(2000)
    assert [done.response.status for done in script.told(ResponseDone)] == ["completed"]


def test_a_failed_recogniser_fails_one_turn_and_no_more() -> None:
    script = Script(hears=None)
    script.ask()
    (heard,) = script.live(fx.Recognise)
    del script.works[heard.request]
    script.step(ev.TranscriptFailed(heard.request, "asr_failed", "Out of memory."))
    (done,) = script.told(ResponseDone)
    assert done.response.status == "failed" and done.response.error_code == "asr_failed"
    assert script.told(ErrorRaised)[0].type == "server_error"
    script.hears = "Again"
    script.ask()
    assert script.live(fx.StartReply)


def test_a_transcription_session_commits_and_never_answers() -> None:
    settings = SessionSettings(type=SessionType.TRANSCRIPTION, turn_detection=ServerVad())
    script = Script(settings=settings, drafts=True)
    script.ask()
    script.ask()
    assert len(script.told(InputCommitted)) == len(script.told(SpeechStopped)) == 2
    script.create()
    (error,) = script.told(ErrorRaised)
    assert (error.code, error.client_event_id) == ("invalid_parameter", "e_create")
    assert not script.done(fx.StartReply)
