"""What the language model reads while the user still talks."""

from __future__ import annotations

from realtime.session import effects as fx
from realtime.session.settings import SemanticVad, ServerVad, SessionSettings
from realtime.session.states import Listening
from tests.realtime.session.script import Script


def read(script: Script) -> list[list[tuple[str, str]]]:
    """The prompts that were read ahead."""
    return [
        [(message.role, message.text) for message in effect.messages]
        for effect in script.done(fx.PrepareReply)
    ]


def talking() -> Script:
    settings = SessionSettings(turn_detection=SemanticVad(), instructions="Be brief.")
    script = Script(settings=settings, drafts=True, hears=None, judges=None)
    script.say(640)
    return script


def test_speech_is_heard_as_it_comes_and_its_text_is_that_of_the_turn() -> None:
    script = talking()
    (listen,) = script.done(fx.Listen)
    assert listen.start <= 0
    script.silence(64)
    (heard,) = script.done(fx.Recognise)
    assert heard.request == listen.request
    script.hear("What time is it?")
    assert script.machine.listening.turn is not None
    assert script.machine.listening.turn.text == "What time is it?"


def test_speech_that_goes_on_is_listened_to_anew() -> None:
    script = talking()
    script.silence(320)
    script.say(320)
    first, second = script.done(fx.Listen)
    assert first.request != second.request and first.start == second.start
    assert fx.Abort(first.request) in script.effects


def test_the_conversation_is_read_when_somebody_begins_to_talk() -> None:
    script = talking()
    assert read(script) == [[("system", "Be brief.")]]


def test_words_are_read_as_they_are_heard_but_for_the_last_one() -> None:
    script = talking()
    script.glimpse("What time is")
    script.glimpse("What time is it in Rome")
    assert read(script)[1:] == [
        [("system", "Be brief."), ("user", "What time")],
        [("system", "Be brief."), ("user", "What time is it in")],
    ]
    assert not script.done(fx.StartReply)


def test_the_same_words_are_not_read_twice() -> None:
    script = talking()
    script.glimpse("What time is")
    script.glimpse("What time it")
    assert len(read(script)) == 2


def test_the_draft_takes_the_model_from_the_reading() -> None:
    script = talking()
    script.glimpse("What time is it")
    prepared = script.done(fx.PrepareReply)[-1].request
    script.works[prepared] = script.done(fx.PrepareReply)[-1]
    script.machine.preparation._request = prepared  # as if it were not done yet
    script.silence(128)
    script.hear("What time is it?")
    order = [e for e in script.effects if isinstance(e, fx.StartReply) or e == fx.Abort(prepared)]
    assert order[0] == fx.Abort(prepared) and isinstance(order[1], fx.StartReply)


def test_what_was_not_read_to_its_end_is_read_again() -> None:
    script = talking()
    script.machine.preparation._request = "prepare-9"  # as if it were not done yet
    script.create()
    script.cancel()
    script.glimpse("So")
    assert read(script) == [[("system", "Be brief.")]] * 2


def test_new_instructions_are_read_before_anybody_speaks() -> None:
    script = Script(SemanticVad(), drafts=True)
    script.update(instructions="Talk like a pirate.")
    assert read(script) == [[("system", "Talk like a pirate.")]]
    script.update(instructions="Talk like a pirate.")
    assert len(read(script)) == 1


def test_nothing_is_read_ahead_where_work_ahead_is_off() -> None:
    script = Script(SemanticVad(), drafts=False)
    script.update(instructions="Talk like a pirate.")
    script.say(640)
    assert not script.done(fx.PrepareReply) and not script.done(fx.Listen)


def test_nothing_is_read_ahead_while_a_reply_runs_or_where_none_is_wanted() -> None:
    script = Script(ServerVad(interrupt_response=False), drafts=True)
    script.create()
    script.write("It is noon.")
    script.speak(9000)
    script.say(640)
    assert script.hearing is Listening.TALKING and not script.done(fx.PrepareReply)
    script = Script(ServerVad(create_response=False), drafts=True)
    script.say(640)
    assert not script.done(fx.PrepareReply)


def test_what_was_heard_before_a_long_pause_is_not_heard_again() -> None:
    script = talking()
    script.silence(320)
    script.hear("I would like to fly")
    script.say(320)
    first, second = script.done(fx.Listen)
    quiet_at = 640 * 16
    assert first.start <= 0 and quiet_at < second.start < quiet_at + 320 * 16
    script.glimpse("to Rome and")
    assert read(script)[-1] == [("system", "Be brief."), ("user", "I would like to fly to Rome")]
    script.silence(128)
    script.hear("to Rome and back.")
    assert script.prompt[-1] == ("user", "I would like to fly to Rome and back.")
    script.silence(320)
    script.say(320)
    script.silence(640)
    script.hear("")
    script.write("Gladly.")
    script.speak(400)
    script.verdict(1.0)
    script.silence(320)
    items = [item.parts[0].text for item in script.machine.ctx.conversation]
    assert items[0] == "I would like to fly to Rome and back."


def test_after_a_short_pause_all_is_heard_again() -> None:
    script = talking()
    script.silence(160)
    script.hear("I would like")
    script.say(320)
    first, second = script.done(fx.Listen)
    assert second.start == first.start


def test_a_turn_that_the_client_ends_is_heard_as_a_whole() -> None:
    script = talking()
    script.silence(320)
    script.hear("I would like to fly")
    script.say(320)
    script.commit()
    assert script.done(fx.Recognise)[-1].start == script.done(fx.Listen)[0].start
