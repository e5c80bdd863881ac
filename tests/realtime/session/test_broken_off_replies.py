"""What the next prompt holds of a reply that was held, broken off or truncated."""

from __future__ import annotations

from realtime.session import effects as fx
from realtime.session.notices import ResponseDone
from realtime.session.prompt import INTERRUPTED
from realtime.session.settings import SemanticVad, ServerVad
from realtime.session.states import Speaking
from tests.realtime.session.long_reply import STORY, speaking
from tests.realtime.session.script import Script


def test_a_reply_that_was_held_is_heard_to_its_last_word() -> None:
    script = speaking(ms=4000)
    script.click()
    script.finish()
    script.wait(20_000)
    (done,) = script.told(ResponseDone)
    assert done.response.status == "completed"
    script.type("And then?")
    script.create()
    assert script.prompt[-2:] == [("assistant", STORY), ("user", "And then?")]


def test_a_reply_that_fell_silent_before_it_was_cut_was_not_heard_whole() -> None:
    script = speaking()
    script.say(1280)
    (done,) = script.told(ResponseDone)
    track = script.machine.ctx.playback.get(done.response.output[0].id)
    assert track is not None and track.heard_ms(script.now_ms) == track.sent_ms
    script.silence(96)
    script.hear("Stop.")
    script.silence(640)
    assert script.prompt[0] == ("assistant", "Once upon a")


def test_a_reply_cut_by_its_length_was_not_interrupted_by_a_later_turn() -> None:
    script = Script(ServerVad(), hears="So it is.", lead_ms=160)
    script.create()
    script.answer("One two three", 800, reason="length")
    script.wait(5000)
    script.type("Go on.")
    script.create()
    script.write("Four five six seven eight nine.")
    script.speak(8000)
    script.wait(1000)
    script.say(1280)
    script.silence(640)
    texts = [text for _, text in script.prompt]
    assert texts.count(INTERRUPTED) == 1
    assert texts[:2] == ["One two three", "Go on."]


def test_a_client_that_truncates_does_not_hide_the_interruption() -> None:
    script = Script(SemanticVad(), hears=None, judges=None, lead_ms=None)
    script.create()
    script.answer(STORY, 2600)
    script.wait(2000)
    assert script.speaking is Speaking.TAIL
    script.say(160)
    (done,) = script.told(ResponseDone)
    script.truncate(done.response.output[0].id, 1500)
    script.silence(96)
    script.hear("Stop.")
    script.silence(1000)
    script.verdict(0.9)
    script.silence(1000)
    assert [text for _, text in script.prompt][1:] == [INTERRUPTED, "Stop."]


def test_a_hold_that_nobody_hears_leaves_no_mark_in_the_sound() -> None:
    script = Script(hears=None, lead_ms=1000)  # the listener has more to play than a hold lasts
    script.create()
    script.write(STORY)
    script.speak(8000)
    script.wait(1500)
    script.click()
    (held,) = script.done(fx.HoldLane)
    assert held.fade_samples == 0
    assert script.speaking is Speaking.SPEAKING


def test_what_faded_when_it_was_held_does_not_fade_when_it_is_cut() -> None:
    script = speaking()
    script.say(1280)
    (held,), (cut,) = script.done(fx.HoldLane), script.done(fx.CutLane)
    assert (held.fade_samples, cut.fade_samples) == (120, 0)


def test_a_call_between_a_reply_and_the_user_hides_no_interruption() -> None:
    script = Script(hears="No.", lead_ms=160)
    script.create()
    script.write(STORY)
    script.speak(8000)
    script.call("look", "{}")
    script.call("look", "{}", 1, "call_b")
    script.wait(2000)
    script.say(1280)
    script.silence(640)
    assert [role for role, _ in script.prompt] == [
        "assistant",
        "system",
        "assistant",
        "tool",
        "user",
    ]
    assert script.prompt[1] == ("system", INTERRUPTED)
