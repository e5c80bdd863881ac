"""Sounds over the agent's speech: a murmur lets it go on, a word that means it stops it."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.backchannel import is_backchannel, is_interruption
from realtime.session.notices import (
    InputCommitted,
    ResponseCreated,
    ResponseDone,
    SpeechStarted,
)
from realtime.session.settings import SemanticVad
from realtime.session.states import Listening, Speaking
from tests.realtime.session.long_reply import speaking
from tests.realtime.session.script import Script


def murmur(script: Script, text: str, ms: int = 320) -> None:
    script.say(ms)
    script.silence(96)
    script.hear(text)


def is_silent(script: Script) -> bool:
    before = len(script.wire.running)
    sent = sum(reply.sent for reply in script.egress.replies.values())
    script.wait(2000)
    assert len(script.wire.running) == before
    return sum(reply.sent for reply in script.egress.replies.values()) == sent


@pytest.mark.parametrize("text", ["Mm-hm.", "Yeah.", "Oh, okay.", "Right, right.", "", "Uh-huh"])
def test_a_murmur_does_not_stop_the_agent(text: str) -> None:
    script = speaking()
    script.say(320)
    assert script.speaking is Speaking.HELD, "it is quiet while the sound is weighed"
    script.silence(96)
    assert script.hearing is Listening.MURMUR
    script.hear(text)
    assert (script.hearing, script.speaking) == (Listening.QUIET, Speaking.SPEAKING)
    assert not is_silent(script)
    assert not script.told(SpeechStarted) and not script.told(InputCommitted)
    assert not script.kept and len(script.told(ResponseCreated)) == 1


@pytest.mark.parametrize("text", ["Stop.", "Wait!", "No.", "Hold on.", "What?", "Okay, but why?"])
def test_a_word_that_means_it_stops_the_agent(text: str) -> None:
    script = speaking()
    murmur(script, text)
    assert script.hearing is Listening.PAUSE
    (done,) = script.told(ResponseDone)
    assert (done.response.status, done.response.reason) == ("cancelled", "turn_detected")
    script.silence(640)
    assert len(script.told(SpeechStarted)) == len(script.told(InputCommitted)) == 1
    assert script.prompt[-1] == ("user", text)


def test_a_glimpse_that_comes_late_decides_nothing() -> None:
    script = speaking()
    script.say(320)
    listen = script.live(fx.Listen)[0].request
    script.silence(96)
    for text in ("", "Sto"):
        script.step(ev.TranscriptPartial(listen, text))
        assert (script.hearing, script.speaking) == (Listening.MURMUR, Speaking.HELD)
    script.hear("Stop.")
    assert script.told(ResponseDone)


def test_murmurs_and_a_real_interruption_in_one_breath() -> None:
    script = speaking()
    script.say(320)
    script.silence(96)
    script.say(320)
    assert script.hearing is Listening.ONSET_QUIET, "the words are weighed together"
    script.silence(96)
    script.hear("Mm-hm, no wait, stop.")
    assert script.told(ResponseDone)


def test_a_murmur_and_then_a_real_interruption() -> None:
    script = speaking()
    murmur(script, "Mm-hm.")
    script.silence(320)
    murmur(script, "No, wait, stop.")
    (done,) = script.told(ResponseDone)
    assert done.response.reason == "turn_detected"


def test_whoever_goes_on_talking_interrupts_whatever_the_words() -> None:
    script = speaking()
    script.say(1080)
    assert not script.told(SpeechStarted)
    script.say(64)
    assert script.told(SpeechStarted) and script.hearing is Listening.TALKING


def test_the_first_words_of_a_sentence_interrupt_before_it_is_over() -> None:
    script = speaking()
    script.say(448)
    script.glimpse("Yeah")
    assert script.hearing is Listening.ONSET_QUIET
    script.glimpse("Can you tell")
    assert script.hearing is Listening.TALKING and script.told(ResponseDone)


def test_what_follows_the_opening_of_a_reply_is_the_rest_of_the_turn() -> None:
    script = speaking(heard_ms=100)
    script.say(160)
    assert script.told(SpeechStarted), "no murmur answers half a word"


def test_a_yes_at_the_end_of_a_question_is_an_answer() -> None:
    script = speaking(ms=3000, heard_ms=2200)
    script.finish()
    script.say(160)
    assert script.told(SpeechStarted)


def test_a_yes_that_comes_while_the_question_ends_is_an_answer_too() -> None:
    script = speaking(ms=4000, heard_ms=1500)
    script.say(64)
    assert script.speaking is Speaking.HELD
    script.wait(1900)  # the sound stays in doubt until the hold runs out
    script.wait(1000)
    script.finish()
    script.say(96)
    script.silence(96)
    if script.hearing is Listening.MURMUR:
        script.hear("Yes.")
    assert script.told(SpeechStarted)


def test_audio_far_ahead_is_not_weighed_since_silence_would_come_too_late() -> None:
    script = speaking(lead_ms=1000)
    script.say(160)
    assert script.told(SpeechStarted) and script.told(ResponseDone)


def test_a_failed_recognition_of_a_murmur_lets_the_agent_go_on() -> None:
    script = speaking()
    script.say(320)
    script.silence(96)
    (asked,) = script.live(fx.Recognise)
    del script.works[asked.request]
    script.step(ev.TranscriptFailed(asked.request, "asr_failed", "Busy."))
    assert (script.hearing, script.speaking) == (Listening.QUIET, Speaking.SPEAKING)


def test_a_murmur_that_nobody_recognises_holds_the_agent_for_a_moment_only() -> None:
    script = speaking()
    script.say(320)
    script.silence(96)
    script.wait(2500)
    assert script.speaking is Speaking.SPEAKING


def test_a_click_is_not_even_recognised() -> None:
    script = speaking()
    script.click()
    assert not script.done(fx.Recognise) and script.speaking is Speaking.SPEAKING


def test_what_is_held_fades_out_and_goes_on_at_the_next_sample() -> None:
    script = speaking()
    (reply,) = script.egress.replies.values()
    before = reply.sent
    script.say(32)
    (held,) = script.done(fx.HoldLane)
    assert held.fade_samples == 120 and reply.sent - before >= 120
    script.silence(96)
    script.finish()
    script.wait(20_000)
    (done,) = script.told(ResponseDone)
    assert done.response.status == "completed"
    assert reply.sent == reply.produced


def test_without_permission_to_interrupt_nothing_is_held_or_weighed() -> None:
    script = speaking(detection=SemanticVad(interrupt_response=False))
    script.say(320)
    assert script.speaking is Speaking.SPEAKING and script.hearing is Listening.TALKING


@pytest.mark.parametrize(
    "text",
    [
        "Yeah, yeah.", "Mhm", "I see.", "Oh really?", "That makes sense.", "Got it, thanks.",
        "Okay okay", "Glad to hear.", "Ja, genau.",
    ],
)  # fmt: skip
def test_backchannels(text: str) -> None:
    assert is_backchannel(text) and not is_interruption(text)


@pytest.mark.parametrize(
    "text",
    [
        "Stop", "No", "Wait a second", "Yeah but why", "What", "Okay, next question", "Help",
        "yeah yeah yeah yeah yeah yeah yeah yeah yeah yeah yeah yeah yeah",
    ],
)  # fmt: skip
def test_words_that_are_no_backchannels(text: str) -> None:
    assert not is_backchannel(text)


def test_half_a_word_is_no_interruption_yet() -> None:
    assert not is_interruption("So")
    assert not is_interruption("Oh what")
    assert is_interruption("Can you please")
