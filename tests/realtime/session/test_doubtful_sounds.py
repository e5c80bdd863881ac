"""Sounds that are not decided yet, when something comes in between."""

from __future__ import annotations

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.notices import InputCommitted, ResponseDone, SpeechStarted
from realtime.session.settings import SemanticVad
from realtime.session.states import Listening
from tests.realtime.session.long_reply import speaking
from tests.realtime.session.script import Script


def test_speech_that_begins_in_the_opening_confirms_although_it_outlasts_it() -> None:
    script = speaking(heard_ms=700)
    script.say(160)
    assert script.told(SpeechStarted)


def test_what_is_said_after_the_client_cleared_the_buffer_still_interrupts() -> None:
    script = speaking()
    script.say(64)
    script.clear()
    script.say(320)
    script.silence(96)
    if script.hearing is Listening.MURMUR:
        script.hear("Stop.")
    assert script.told(SpeechStarted)


def test_a_breath_after_a_word_does_not_swallow_it() -> None:
    script = speaking()
    script.say(320)
    script.silence(96)
    script.click()
    assert script.hearing is Listening.MURMUR
    script.hear("Stop.")
    assert script.told(ResponseDone)


def test_sounds_that_come_and_go_are_speech_in_the_end() -> None:
    script = speaking(ms=60_000)
    for _ in range(20):
        script.say(192)
        script.silence(96)
    assert script.told(SpeechStarted)


def test_a_word_after_which_the_microphone_is_muted_is_weighed() -> None:
    script = speaking()
    script.say(320)
    script.wait(1100)
    assert script.hearing is Listening.MURMUR
    script.hear("Stop.")
    assert script.told(ResponseDone)


def test_a_commit_during_a_murmur_takes_the_whole_buffer() -> None:
    script = speaking()
    script.silence(960)
    script.say(320)
    script.silence(64)
    assert script.hearing is Listening.MURMUR
    script.commit()
    (filed,) = script.done(fx.FileAudio)
    kept = [e for e in script.done(fx.KeepAudio) if e.turn == filed.turn]
    assert kept[0].start == 0 and filed.end == script.position
    assert script.told(InputCommitted)


def test_a_turn_whose_listening_failed_is_recognised_at_its_end() -> None:
    script = Script(SemanticVad(), hears=None, judges=None, drafts=True)
    script.say(640)
    listen = script.live(fx.Listen)[0].request
    del script.works[listen]
    script.step(ev.TranscriptFailed(listen, "asr_failed", "Busy."))
    script.say(28_000)
    asked = script.done(fx.Recognise)
    assert asked and asked[0].request != listen
    script.hear("And so on.")
    (committed,) = script.told(InputCommitted)
    item = script.machine.ctx.conversation.get(committed.item_id)
    assert item is not None and item.parts[0].text == "And so on."


def test_a_recogniser_that_ends_before_the_turn_does_is_asked_again() -> None:
    script = Script(SemanticVad(), hears=None, judges=None, drafts=True)
    script.say(640)
    listen = script.live(fx.Listen)[0].request
    del script.works[listen]
    script.step(ev.TranscriptFinal(listen, "What"))
    script.silence(64)
    turn = script.machine.listening.turn
    assert turn is not None and turn.text is None
    script.hear("What time is it?")
    assert turn.text == "What time is it?"
