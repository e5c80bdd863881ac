"""The user talks while the agent does: held at a suspicion, stopped at a certainty."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.items import ItemStatus
from realtime.session.notices import (
    AudioDone,
    InputCommitted,
    ItemTruncated,
    OutputItemDone,
    ResponseCreated,
    ResponseDone,
    SpeechStarted,
)
from realtime.session.prompt import CONTINUE
from realtime.session.settings import ServerVad
from realtime.session.states import Listening, Speaking
from tests.realtime.session.script import RATE_HZ, Script

LONG = "Once upon a time there was a very long story indeed"


def speaking(**options: object) -> Script:
    """A reply of five seconds, 800 ms of which have been heard."""
    script = Script(**options)  # pyright: ignore[reportArgumentType]
    script.ask()
    script.write(LONG)
    script.speak(5000, len(LONG))
    script.silence(800)
    assert script.speaking is Speaking.SPEAKING
    return script


def in_tail() -> Script:
    """A reply of which everything has left and 700 ms are still to be heard."""
    script = Script()
    script.ask()
    script.answer(LONG, 1500)
    script.silence(800)
    assert script.speaking is Speaking.TAIL
    return script


def test_an_interruption_happens_in_its_fixed_order() -> None:
    script = speaking()
    before = len(script.effects)
    script.say(160)
    kinds = [
        effect.notice if isinstance(effect, fx.Notify) else effect
        for effect in script.effects[before:]
    ]
    order = [type(kind).__name__ for kind in kinds]
    order = order[order.index("SpeechStarted") :]
    assert order == [
        "SpeechStarted",
        "CutLane",
        "AudioDone",
        "TextDone",
        "PartDone",
        "OutputItemDone",
        "ItemDone",
        "ResponseDone",
        "Observe",
        "Abort",
        "NotifyDetail",  # last, whatever happened in the step
    ]
    # Far ahead of the listener the hold is not heard: it is the cut that fades.
    (held,), (cut,) = script.done(fx.HoldLane), script.done(fx.CutLane)
    assert (held.fade_samples, cut.fade_samples) == (0, 5 * RATE_HZ // 1000)
    (done,) = script.told(ResponseDone)
    assert (done.response.status, done.response.reason) == ("cancelled", "turn_detected")
    assert done.response.output[0].status is ItemStatus.INCOMPLETE
    assert not script.egress.replies
    (heard,) = script.egress.heard.values()
    script.truncate(script.item_ids[1], heard.sent // 24)
    assert script.told(ItemTruncated), "the fade counts as sent"


def test_nothing_is_sent_between_onset_and_certainty() -> None:
    script = speaking()
    script.say(32)
    assert script.speaking is Speaking.HELD
    sent = script.egress.replies[script.reply].sent
    script.say(64)
    assert script.egress.replies[script.reply].sent == sent


def test_a_click_holds_the_reply_and_lets_it_go_on_at_the_next_sample() -> None:
    script = speaking()
    script.click()
    assert script.speaking is Speaking.SPEAKING
    script.finish()
    script.wait(6000)
    (done,) = script.told(ResponseDone)
    assert done.response.status == "completed"
    assert done.response.output[0].parts[0].text == LONG
    assert done.response.output[0].parts[0].audio_ms == 5000, "not a sample is lost or repeated"
    assert not script.told(SpeechStarted)[1:]


def test_a_click_in_the_tail_changes_nothing() -> None:
    script = in_tail()
    script.say(32)
    assert script.speaking is Speaking.HELD_TAIL
    script.silence(96)
    assert script.speaking is Speaking.TAIL
    script.wait(2000)
    assert script.speaking is Speaking.IDLE
    assert not script.done(fx.CutLane)


def test_speech_in_the_tail_silences_it_without_touching_the_response() -> None:
    script = in_tail()
    script.say(160)
    assert len(script.done(fx.CutLane)) == 1
    (done,) = script.told(ResponseDone)
    assert done.response.status == "completed"
    assert script.speaking is Speaking.IDLE


def test_a_second_onset_right_after_a_false_alarm_still_interrupts() -> None:
    """Mm-hm (too short to count) ... no wait, stop."""
    script = speaking()
    script.say(96)
    script.silence(96)
    assert script.speaking is Speaking.SPEAKING
    script.say(320)
    assert script.told(ResponseDone)[0].response.reason == "turn_detected"
    script.silence(640)
    assert script.told(InputCommitted)[1:]


def test_a_hold_that_nothing_decides_ends_by_itself() -> None:
    script = speaking()
    script.say(32)
    for _ in range(3):  # frames trickle, too slowly to decide and too fast for a gap
        script.wait(900)
        script.position += 512
        script.step(ev.AudioFrame(script.position, 0.95 if _ == 1 else 0.3, -30.0))
    assert script.speaking is not Speaking.HELD


def test_speech_before_the_first_output_cancels_the_response_unheard() -> None:
    script = Script()
    script.ask()
    late = script.reply
    script.say(160)
    assert script.told(ResponseDone)[0].response.status == "cancelled"
    script.step(ev.ReplyText(late, "Too late."))
    script.step(ev.ReplyAudio(late, 24_000, 9))
    script.step(ev.ReplyFinished(late, "stop"))
    assert not script.egress.heard and not script.told(OutputItemDone)
    script.silence(640)
    assert script.prompt[-1] == ("user", "What time is it?\nWhat time is it?")


@pytest.mark.parametrize("frames", range(6))
def test_an_onset_around_the_first_audio_never_makes_both_talk(frames: int) -> None:
    script = Script()
    script.ask()
    script.write(LONG)
    script.say(32 * frames)
    if script.live(fx.StartReply):
        script.speak(2000)
    script.say(32 * (8 - frames))
    assert script.hearing is Listening.TALKING
    assert script.speaking is Speaking.IDLE
    script.wait(500)
    assert not script.egress.replies


def test_speech_that_resumes_after_a_pause_holds_and_stops_a_reply_begun_in_it() -> None:
    script = Script()
    script.say(640)
    script.silence(96)
    script.create()
    script.write(LONG)
    script.speak(2000)
    assert script.speaking is Speaking.SPEAKING
    script.say(32)
    assert script.speaking is Speaking.HELD
    script.say(128)
    assert script.told(ResponseDone)[0].response.reason == "turn_detected"


def test_a_first_output_during_an_onset_stays_unsent_until_released() -> None:
    script = Script()
    script.ask()
    script.say(32)
    script.write("Well.")
    script.speak(400)
    script.call("look", "{}")
    script.finish("tool_calls")
    assert script.speaking is Speaking.HELD
    assert script.names()[-1] == "ResponseCreated", "neither sound nor call is seen"
    script.silence(96)
    script.wait(1000)
    (done,) = script.told(ResponseDone)
    assert done.response.status == "completed" and len(done.response.output) == 2


def test_calls_of_a_reply_that_is_heard_already_go_out_while_it_is_held() -> None:
    script = speaking()
    script.say(32)
    script.call("look", "{}")
    script.finish("tool_calls")
    assert script.speaking is Speaking.HELD
    (call,) = [o for o in script.told(OutputItemDone) if o.item.name == "look"]
    assert call.item.status is ItemStatus.COMPLETED
    script.say(128)
    assert script.told(ResponseDone)[0].response.status == "cancelled"
    assert len(script.told(OutputItemDone)) == 2


def test_audio_that_came_while_held_and_was_never_announced_is_not_faded_out() -> None:
    script = Script()
    script.ask()
    script.call("look", "{}")
    script.say(32)
    script.write("Let me see.")
    script.speak(400)
    script.say(128)
    (cut,) = script.done(fx.CutLane)
    assert cut.fade_samples == 0


def test_barge_in_with_tools_pending_keeps_the_calls_and_takes_their_outputs() -> None:
    script = Script()
    script.ask()
    script.call("look", '{"at": "clock"}')
    script.write("One moment, please, while I am looking at it.")
    script.speak(3000)
    script.finish("tool_calls")
    script.say(320)
    assert script.told(ResponseDone)[0].response.status == "cancelled"
    script.output("call_a", '{"time": "noon"}')
    script.silence(640)
    roles = [role for role, _ in script.prompt]
    assert roles.count("tool") == 1
    assert ("tool", '{"time": "noon"}') in script.prompt


def test_noise_that_interrupted_a_reply_lets_it_go_on_from_where_it_was_heard() -> None:
    script = speaking(hears="Tell me a story")
    script.finish()
    script.hears = ""
    script.ask()
    assert len(script.told(ResponseCreated)) == 2
    assert script.prompt[-1] == ("system", CONTINUE)
    role, heard = script.prompt[-2]
    assert role == "assistant" and LONG.startswith(heard) and 0 < len(heard) < len(LONG) / 3
    assert f"{heard} {script.live(fx.StartReply)[0].text}" == LONG, "word for word"


def test_two_noises_in_a_row_still_let_the_reply_go_on() -> None:
    script = speaking(hears="Tell me a story")
    script.hears = None
    script.ask()
    script.say(320)
    script.hear("")
    assert script.speaking is Speaking.IDLE, "the user may be talking"
    script.hears = ""
    script.silence(640)
    assert script.prompt[-1] == ("system", CONTINUE)


def test_noise_before_the_first_output_answers_what_was_asked() -> None:
    script = Script()
    script.ask()
    script.hears = ""
    script.ask()
    assert [c.response.status for c in script.told(ResponseDone)] == ["cancelled"]
    assert script.prompt == [("user", "What time is it?")]
    assert script.speaking is Speaking.WAITING


def test_noise_before_the_first_output_of_a_later_answer_is_answered_too() -> None:
    script = Script()
    script.ask()
    script.answer("It is noon.", 400)
    script.wait(2000)
    script.ask()
    script.hears = ""
    script.ask()
    assert script.speaking is Speaking.WAITING
    assert script.prompt[-1] == ("user", "What time is it?")


def test_noise_in_the_tail_of_a_reply_lets_it_go_on() -> None:
    script = in_tail()
    script.hears = ""
    script.ask(160)
    assert script.prompt[-1] == ("system", CONTINUE)


def test_noise_after_a_reply_that_was_all_but_heard_out_asks_for_nothing() -> None:
    script = Script()
    script.ask()
    script.answer("It is noon.", 600)
    script.silence(400)
    script.hears = ""
    script.ask()
    assert len(script.told(ResponseCreated)) == 1


def test_interruptions_can_be_switched_off() -> None:
    script = speaking(turn_detection=ServerVad(interrupt_response=False))
    script.say(640)
    assert len(script.told(SpeechStarted)) == 2
    assert not script.done(fx.HoldLane) and not script.done(fx.CutLane)
    script.silence(640)
    assert len(script.told(ResponseCreated)) == 1, "the answer to it waits"
    script.finish()
    script.wait(3000)
    assert len(script.told(ResponseCreated)) == 2
    script.answer()
    script.wait(9000)
    assert script.told(AudioDone)[1:] and script.speaking is Speaking.IDLE


def test_noise_while_interruptions_are_off_causes_neither_cancel_nor_answer() -> None:
    script = speaking(turn_detection=ServerVad(interrupt_response=False))
    script.hears = ""
    script.ask()
    script.finish()
    script.wait(9000)
    assert [done.response.status for done in script.told(ResponseDone)] == ["completed"]


def test_switching_interruptions_off_during_a_suspicion_lets_the_reply_go_on() -> None:
    script = speaking()
    script.say(32)
    script.update(turn_detection=ServerVad(interrupt_response=False))
    assert script.speaking is Speaking.SPEAKING
    script.say(320)
    assert script.speaking is Speaking.SPEAKING


def test_200_interruptions_leave_nothing_behind() -> None:
    script = Script()
    for _ in range(200):
        script.ask(320)
        script.write(LONG)
        script.speak(4000)
        script.silence(320)
    assert len(script.told(ResponseDone)) == 199
    assert len(script.works) == len(script.egress.replies) == 1
    script.step(ev.Disconnected())
    assert not script.works and not script.kept
