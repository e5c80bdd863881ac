"""What the language model is told of the past: what was heard, in the order in which it began."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.notices import ItemAdded
from realtime.session.prompt import INTERRUPTED, NO_RESULT, TOO_EARLY
from realtime.session.settings import ServerVad
from tests.realtime.session.script import Script, text_only

TEXT = "one two three four five six seven eight nine ten"


def speaking(heard_ms: int, of_ms: int = 5000) -> Script:
    script = Script()
    script.ask()
    script.write(TEXT)
    script.speak(of_ms)
    script.silence(heard_ms)
    return script


def test_a_finished_exchange_is_remembered_whole() -> None:
    script = Script()
    script.ask()
    script.answer("It is noon.", 800)
    script.wait(3000)
    script.ask()
    assert script.prompt == [
        ("user", "What time is it?"),
        ("assistant", "It is noon."),
        ("user", "What time is it?"),
    ]


@pytest.mark.parametrize(
    ("heard_ms", "words"), [(160, 0), (1152, 2), (2048, 4), (3200, 6), (4480, 9)]
)
def test_an_interrupted_reply_is_remembered_as_far_as_it_was_heard(
    heard_ms: int, words: int
) -> None:
    script = speaking(heard_ms)
    script.ask()
    heard = " ".join(TEXT.split()[:words])
    said = [text for role, text in script.prompt if role == "assistant"]
    assert said == ([heard] if heard else []), "and what nobody heard leaves the prompt"


def test_the_client_knows_better_than_the_clock() -> None:
    script = speaking(2048)
    script.say(640)
    script.step(ev.PlaybackReported(script.item_ids[1], 1100))  # after it has stopped to play
    script.silence(640)
    assert ("assistant", "one two") in script.prompt


def test_a_report_is_carried_on_while_the_client_plays() -> None:
    script = speaking(1024)
    script.step(ev.PlaybackReported(script.item_ids[1], 600))
    script.silence(320)  # 920 ms, and a little more until the interruption is noticed
    script.ask()
    assert ("assistant", "one two") in script.prompt


def test_a_report_is_not_carried_on_for_long() -> None:
    script = speaking(1024)
    script.step(ev.PlaybackReported(script.item_ids[1], 600))
    script.silence(3200)  # the client has stalled: nothing more was reported
    script.ask()
    assert ("assistant", "one two") in script.prompt


def test_reports_never_go_back_and_those_of_unknown_items_are_ignored() -> None:
    script = speaking(2048)
    script.say(640)
    for item_id, played_ms in ((script.item_ids[1], 1600), (script.item_ids[1], 500), ("x", 9)):
        script.step(ev.PlaybackReported(item_id, played_ms))
    script.silence(640)
    assert ("assistant", "one two three") in script.prompt


def test_the_client_s_truncation_knows_best() -> None:
    script = speaking(1152)
    script.say(160)
    script.truncate(script.item_ids[1], 1600)
    script.silence(640)
    assert ("assistant", "one two three") in script.prompt


def test_the_interrupted_reply_stands_before_the_turn_that_interrupted_it() -> None:
    script = speaking(2048)
    script.hears = "Stop!"
    script.ask()
    assert [role for role, _ in script.prompt] == ["user", "assistant", "system", "user"]
    assert script.prompt[-2:] == [("system", INTERRUPTED), ("user", "Stop!")]


def test_a_reply_stands_before_what_was_said_while_it_was_being_made() -> None:
    script = Script()
    script.say(640)
    script.silence(200)
    script.type("What is two and two?")
    script.create()
    script.silence(640)  # the spoken turn is over before the typed one is answered
    script.write("Four.")
    script.speak(800)
    script.finish()
    roles = [(item.role, item.parts[0].text) for item in script.machine.ctx.conversation]
    assert roles == [
        ("user", "What is two and two?"),
        ("assistant", "Four."),
        ("user", "What time is it?"),
    ]
    typed, _spoken, answer = script.told(ItemAdded)
    assert answer.previous_item_id == typed.item.id


def test_a_reply_whose_question_was_deleted_goes_to_the_end() -> None:
    script = Script()
    script.type("What is two and two?")
    script.create()
    script.delete(script.item_ids[0])
    script.type("Never mind.")
    script.answer("Four.")
    assert [item.role for item in script.machine.ctx.conversation] == ["user", "assistant"]


def test_a_turn_that_was_answered_too_early_is_answered_with_what_follows() -> None:
    script = speaking(800)
    script.hears = "And in Rome?"
    script.ask()
    assert [role for role, _ in script.prompt] == ["user", "assistant", "system", "user"]
    assert script.prompt[-2:] == [("system", TOO_EARLY), ("user", "And in Rome?")]


def test_the_model_is_told_that_it_was_interrupted_only_where_it_was() -> None:
    script = Script()
    script.ask()
    script.answer("It is noon.", 800)
    script.silence(2000)
    script.ask()
    assert [role for role, _ in script.prompt] == ["user", "assistant", "user"]


def test_words_heard_in_the_tail_of_a_finished_reply_are_kept() -> None:
    script = Script()
    script.ask()
    script.answer(TEXT, 1500)
    script.silence(800)
    script.ask()
    said = [text for role, text in script.prompt if role == "assistant"]
    assert said == ["one two three four five six"]


def test_what_is_said_to_an_idle_user_is_no_message_of_theirs() -> None:
    script = Script(ServerVad(idle_timeout_ms=3000))
    script.ask()
    script.answer()
    script.wait(5000)
    assert [role for role, _ in script.prompt] == ["user", "assistant", "system"]
    script.answer("Are you there?", 400)
    script.wait(2000)
    script.ask()
    assert [role for role, _ in script.prompt] == ["user", "assistant", "user"]


def test_typed_input_while_the_agent_speaks_is_in_the_next_prompt() -> None:
    script = speaking(640)
    script.type("In Rome, I mean.")
    script.finish()
    script.wait(6000)
    script.create()
    assert script.prompt[-1] == ("user", "In Rome, I mean.")
    assert script.prompt[-2] == ("assistant", TEXT)


def test_a_call_and_its_output_stand_together_whatever_came_between() -> None:
    script = Script()
    script.ask()
    script.call("look", '{"at": 1}')
    script.finish("tool_calls")
    script.ask()
    script.output("call_a", "noon")
    script.cancel()
    script.create()
    started = script.done(fx.StartReply)[-1]
    roles = [message.role for message in started.messages]
    assert roles == ["user", "assistant", "tool", "user"]
    assert started.messages[1].calls[0].arguments == '{"at": 1}'
    assert started.messages[2].call_id == "call_a"


def test_a_call_without_output_blocks_nothing() -> None:
    script = Script()
    script.ask()
    script.call("look", "{}")
    script.finish("tool_calls")
    script.ask()
    assert ("tool", NO_RESULT) in script.prompt


def test_a_call_that_was_cut_short_was_never_made() -> None:
    script = Script()
    script.ask()
    script.call("look", '{"at": ')
    script.cancel()
    script.create()
    assert script.prompt == [("user", "What time is it?")]


def test_text_of_an_answer_in_text_is_kept_as_far_as_it_was_sent() -> None:
    script = Script(settings=text_only(turn_detection=ServerVad()))
    script.ask()
    script.write("It is")
    script.cancel()
    script.create()
    assert script.prompt == [("user", "What time is it?"), ("assistant", "It is")]


def test_instructions_come_first_and_can_be_replaced_for_one_response() -> None:
    script = Script()
    script.update(instructions="Be brief.")
    script.type("Hello")
    script.create()
    assert script.prompt == [("system", "Be brief."), ("user", "Hello")]
    script.cancel()
    script.create(instructions="Be kind.")
    assert script.prompt[0] == ("system", "Be kind.")
    script.cancel()
    script.create(instructions="")
    assert script.prompt == [("user", "Hello")]


def test_the_heard_mark_falls_on_whole_words_between_marks_of_the_voice() -> None:
    """Two stretches of speech, one fast and one slow, each with its own mark."""
    script = Script()
    script.ask()
    script.write(TEXT)
    script.speak(400, len("one two three four"))
    script.speak(6000, len(TEXT))
    script.silence(352)
    script.say(128)
    script.silence(640)
    assert ("assistant", "one two three four") in script.prompt
