"""What a watcher is shown of the conversation, and when."""

from __future__ import annotations

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.notices import SessionCreated, StateShown
from realtime.session.settings import Modality, SemanticVad, ServerVad, SessionSettings
from realtime.session.states import Speaking
from tests.realtime.session.long_reply import speaking
from tests.realtime.session.losses import come_back, in_mid_reply, lose
from tests.realtime.session.moments import EVENTS, all_pairs
from tests.realtime.session.script import Script, text_only


def test_a_turn_and_its_answer() -> None:
    script = Script()
    assert script.shown == ["listening"]
    script.say(640)
    assert script.shown == ["listening", "hearing"]
    script.silence(320)
    assert script.shown == ["listening", "hearing"], "a gap between two words"
    script.silence(320)
    assert script.speaking is Speaking.WAITING
    assert script.shown == ["listening", "hearing", "thinking"]
    script.write("It is noon.")
    assert script.shown[3:] == [], "nothing can be heard yet"
    script.speak(800)
    assert script.speaking is Speaking.SPEAKING and script.shown[3:] == ["speaking"]
    script.finish()
    script.wait(700)
    assert script.speaking is Speaking.TAIL and script.shown[3:] == ["speaking"]
    script.wait(200)
    assert script.shown[3:] == ["speaking", "listening"]


def test_a_speaker_who_pauses_and_goes_on() -> None:
    script = Script(SemanticVad(), hears=None, judges=0.1)
    script.say(640)
    script.silence(480)
    script.say(64)
    assert script.shown[1:] == ["hearing", "thinking"], "a click in a pause changes nothing"
    script.say(320)
    assert script.shown[1:] == ["hearing", "thinking", "hearing"]


def test_no_answer_is_expected_where_none_is_made() -> None:
    script = Script(ServerVad(create_response=False, silence_duration_ms=900), hears=None)
    script.ask(silence_ms=960)
    assert script.shown == ["listening", "hearing", "listening"]


def test_a_turn_whose_words_are_awaited_is_thought_about() -> None:
    script = Script(hears=None)
    script.ask()
    assert script.machine.turns.is_concluding and script.shown[-1] == "thinking"
    script.hear("")
    assert script.shown[-1] == "listening", "nothing was said"


def test_a_sound_over_the_agents_speech() -> None:
    script = speaking()
    script.say(64)
    assert script.shown[-2:] == ["speaking", "held"]
    script.silence(96)
    assert script.shown[-1] == "speaking"
    script.say(1200)
    assert script.shown[-3:] == ["speaking", "held", "hearing"]


def test_a_held_tail_plays_on() -> None:
    script = Script()
    script.ask()
    script.answer("It is noon.", 900)
    script.say(64)
    assert script.speaking is Speaking.HELD_TAIL and script.shown[-1] == "speaking"


def in_a_tail() -> Script:
    """All 950 ms of a reply are sent, and 200 ms have played."""
    script = Script()
    script.ask()
    script.answer("It is noon.", 950)
    script.wait(200)
    assert script.speaking is Speaking.TAIL and script.shown[-1] == "speaking"
    return script


def test_a_tail_that_the_listener_cuts_away_sounds_no_more() -> None:
    script = in_a_tail()
    script.step(ev.PlaybackReported(script.item_ids[1], 180))
    script.truncate(script.item_ids[1], 180)
    script.wait(1)
    assert script.speaking is Speaking.IDLE and script.shown[-1] == "listening"
    script.create()
    script.answer("Yes.", 500)
    assert script.shown[-1] == "speaking"
    script.wait(490)
    assert script.shown[-1] == "speaking"
    script.wait(20)
    assert script.shown[-1] == "listening", "it plays at once, and not behind what was cut away"


def test_a_tail_that_is_shortened_ends_where_it_was_cut() -> None:
    script = in_a_tail()
    script.truncate(script.item_ids[1], 500)
    script.wait(290)
    assert script.shown[-1] == "speaking"
    script.wait(20)
    assert script.shown[-1] == "listening"


def test_an_answer_behind_a_tail_that_is_cut_away_is_thought_about() -> None:
    script = in_a_tail()
    script.create()
    assert script.speaking is Speaking.WAITING and script.shown[-1] == "speaking"
    script.truncate(script.item_ids[1], 200)
    assert script.shown[-1] == "thinking"
    script.step(ev.ClientResponseCancel("e_cancel"))
    script.wait(5000)
    assert script.shown[-1] == "listening"


def test_what_was_not_begun_is_not_held() -> None:
    script = Script()
    script.ask()
    script.say(64)
    script.write("It is noon.")
    script.speak(800)
    assert script.speaking is Speaking.HELD and script.shown[-1] == "thinking"


def test_an_answer_that_waits_behind_another_one() -> None:
    script = Script(None)
    script.create()
    script.answer("Before that.", 1000)
    script.create()
    assert script.speaking is Speaking.WAITING and script.shown[-1] == "speaking"


def test_a_written_reply_is_said_as_it_is_written() -> None:
    script = Script(settings=text_only())
    script.create()
    assert script.shown[-1] == "thinking"
    script.write("Noon.")
    assert script.shown[-1] == "speaking"
    script.finish()
    assert script.shown[-1] == "listening"


def test_a_reply_of_calls_alone_is_no_speech() -> None:
    script = Script()
    script.create()
    script.call("look", "{}")
    assert script.speaking is Speaking.SPEAKING and script.shown[-1] == "thinking"
    script.finish("tool_calls")
    assert script.shown[-1] == "listening"


def test_the_state_is_the_last_thing_told_of_a_step_and_told_once() -> None:
    for play in list(all_pairs())[::7]:
        script = play()
        for _, _, effects in script.log:
            states = [
                effect
                for effect in effects
                if isinstance(effect, fx.NotifyDetail) and isinstance(effect.detail, StateShown)
            ]
            assert len(states) <= 1 and states == effects[len(effects) - len(states) :]


def test_nobody_is_shown_a_session_that_has_ended_or_waits() -> None:
    for name in ("leaving", "loss"):
        script = Script()
        script.say(640)
        EVENTS[name](script)
        before = list(script.shown)
        script.wait(1000)
        assert script.shown == before


def test_whoever_comes_back_is_told_after_the_conversation() -> None:
    script = in_mid_reply()
    assert script.shown[-1] == "speaking"
    lose(script)
    assert script.shown[-1] == "speaking", "nobody is there to be told"
    effects = script.step(ev.Reconnected(script.position))
    kinds = [
        type(effect.notice if isinstance(effect, fx.Notify) else effect).__name__
        for effect in effects
    ]
    assert kinds[:2] == ["SessionCreated", "TellConversation"]
    assert kinds[-1] == "NotifyDetail" and script.shown[-1] == "thinking", "the rest is to be said"


def test_the_same_state_is_told_again_to_another_client() -> None:
    script = Script()
    for _ in range(3):
        lose(script)
        come_back(script)
    assert script.shown == ["listening"] * 4
    assert len(script.told(SessionCreated)) == 4


def test_modality_is_of_the_response_and_not_of_the_session() -> None:
    script = Script(settings=SessionSettings(turn_detection=ServerVad()))
    script.create(modality=Modality.TEXT)
    script.write("Noon.")
    assert script.shown[-1] == "speaking"
