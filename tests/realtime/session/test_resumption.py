"""A client is lost and comes back: what it has heard stands, what it has not heard is said."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.effects import TellConversation
from realtime.session.items import ItemStatus
from realtime.session.notices import (
    ErrorRaised,
    ResponseCreated,
    ResponseDone,
)
from realtime.session.prompt import RECONNECTED, STILL_THERE
from realtime.session.settings import Modality, ServerVad, SessionSettings
from realtime.session.states import Speaking
from tests.realtime.session.losses import (
    TEN_WORDS,
    come_back,
    in_mid_reply,
    lose,
    texts,
    told_items,
)
from tests.realtime.session.script import RATE_HZ, Script

# ---- what is under way -------------------------------------------------------------------------


def test_a_reply_in_mid_sentence_goes_on_behind_the_last_word_heard() -> None:
    script = in_mid_reply()
    lose(script)
    script.wait(5000)
    assert not script.works, "while it is parked, nothing works"
    come_back(script)
    assert texts(script) == ["What time is it?", "one two three four"]
    assert told_items(script)[1].status is ItemStatus.INCOMPLETE
    assert script.prompt == [
        ("user", "What time is it?"),
        ("assistant", "one two three four"),
        ("system", RECONNECTED),
    ]
    script.answer("five six seven eight nine ten", 3000)
    script.wait(4000)
    assert [done.response.status for done in script.told(ResponseDone)] == [
        "cancelled",
        "completed",
    ]
    script.create()
    said = " ".join(text for role, text in script.prompt if role == "assistant")
    assert said.split() == TEN_WORDS.split(), "each word once, in one piece"


def test_what_was_not_heard_cannot_be_retrieved() -> None:
    script = in_mid_reply()
    lose(script)
    item_id = script.item_ids[1]
    (trim,) = script.done(fx.TrimItemAudio)
    assert (trim.item_id, trim.audio_ms) == (item_id, 2080)
    come_back(script)
    script.truncate(item_id, 2500)
    assert "already shorter" in script.told(ErrorRaised)[0].message
    script.truncate(item_id, 1000)
    assert script.machine.ctx.conversation.get(item_id) is not None
    assert texts(script)[1] == "one two three four"


def test_audio_that_never_reached_the_network_was_not_heard() -> None:
    script = in_mid_reply()
    item_id = script.item_ids[1]
    sent_ms = script.egress.heard[item_id].sent * 1000 // RATE_HZ
    assert sent_ms > 2080
    lose(script, unsent=((item_id, (sent_ms - 1000) * RATE_HZ // 1000), ("item_gone", 900)))
    come_back(script)
    assert texts(script)[1] == "one two"


def test_a_network_that_died_unseen_played_nothing_after_its_last_sign() -> None:
    """The microphone was open and fell silent; the reply was sent to nobody for five seconds."""
    script = in_mid_reply()
    script.finish()
    script.wait(5000)
    assert script.told(ResponseDone)[0].response.status == "completed"
    lose(script, is_silent=True)
    come_back(script)
    assert texts(script)[1] == "one two three four"
    assert script.prompt[-1] == ("system", RECONNECTED)


def test_a_client_that_said_goodbye_heard_everything_until_then() -> None:
    script = in_mid_reply()
    script.finish()
    script.wait(5000)
    lose(script)
    come_back(script)
    assert texts(script)[1] == TEN_WORDS
    assert len(script.told(ResponseCreated)) == 1


def test_a_client_that_sends_no_audio_while_it_listens_gives_no_sign() -> None:
    script = Script(None)
    script.say(640)
    script.update(turn_detection=ServerVad())
    script.wait(3000)
    script.create()
    script.write(TEN_WORDS)
    script.speak(5000)
    script.wait(3000)
    lose(script, is_silent=True)
    come_back(script)
    assert texts(script) == ["one two three four five six"]


def test_an_unanswered_question_is_answered() -> None:
    script = Script()
    script.ask()
    assert script.speaking is Speaking.WAITING
    lose(script)
    come_back(script)
    assert script.speaking is Speaking.WAITING
    assert script.prompt == [("user", "What time is it?")]
    script.answer()
    assert len(script.told(ResponseCreated)) == 2


def test_a_reply_of_which_no_word_was_heard_is_given_anew() -> None:
    script = in_mid_reply(heard_ms=96)
    lose(script)
    come_back(script)
    assert texts(script) == ["What time is it?", ""]
    assert script.prompt == [("user", "What time is it?")]


def test_what_follows_a_tools_output_is_left_to_the_client() -> None:
    script = Script()
    script.ask()
    script.write("Let me look at the clock.")
    script.speak(3000)
    script.call("look", "{}")
    script.finish("tool_calls")
    script.wait(4000)
    script.create()
    lose(script)
    come_back(script)
    assert script.speaking is Speaking.WAITING, "what the client had asked for"
    script.cancel()
    script.output("call_a")
    script.create()
    assert ("tool", "{}") in script.prompt


def test_a_call_that_waits_for_its_output_keeps_the_reply_from_going_on() -> None:
    script = Script()
    script.ask()
    script.write("Let me look at the clock.")
    script.speak(3000)
    script.call("look", "{}")
    script.finish("tool_calls")
    script.wait(1000)
    lose(script)
    come_back(script)
    assert script.speaking is Speaking.IDLE
    assert len(script.told(ResponseCreated)) == 1


def test_a_text_in_mid_sentence_goes_on() -> None:
    script = Script(settings=SessionSettings(modality=Modality.TEXT, turn_detection=ServerVad()))
    script.ask()
    script.write("It is ")
    lose(script)
    come_back(script)
    assert script.prompt[1:] == [("assistant", "It is"), ("system", RECONNECTED)]


def test_a_queued_question_is_answered_together_with_the_one_before() -> None:
    script = Script(ServerVad(interrupt_response=False))
    script.ask()
    script.write(TEN_WORDS)
    script.speak(9000)
    script.hears = "And in Rome?"
    script.ask()
    lose(script)
    come_back(script)
    assert len(script.told(ResponseCreated)) == 2
    assert script.prompt[-1] == ("user", "And in Rome?")


def test_a_question_that_the_user_talked_over_is_answered() -> None:
    """What they went on to say is lost with the socket; what was committed is not."""
    script = Script()
    script.ask()
    script.say(320)
    lose(script)
    come_back(script)
    assert script.speaking is Speaking.WAITING
    assert script.prompt == [("user", "What time is it?")]


def test_a_reply_that_the_user_interrupted_stays_interrupted() -> None:
    script = in_mid_reply()
    script.say(320)
    lose(script)
    come_back(script)
    assert script.speaking is Speaking.IDLE
    assert len(script.told(ResponseCreated)) == 1
    assert texts(script)[1] == "one two three four", "also of this one, only what was heard"


@pytest.mark.parametrize("detection", [None, ServerVad(create_response=False)])
def test_a_client_that_asks_for_responses_itself_hears_the_rest_too(
    detection: ServerVad | None,
) -> None:
    script = Script(detection)
    script.type("What time is it?")
    script.create()
    script.write(TEN_WORDS)
    script.speak(5000)
    script.finish()
    script.wait(2080)
    lose(script)
    come_back(script)
    assert texts(script)[1] == "one two three four"
    assert script.live(fx.StartReply)[0].text == "five six seven eight nine ten"


@pytest.mark.parametrize(
    ("written", "rest"),
    [
        ("one two three four five. Six seven eight nine", "five."),
        ("one two three four five six seven eight nine", None),
    ],
)
def test_of_a_text_that_was_never_finished_whole_sentences_are_said(
    written: str, rest: str | None
) -> None:
    script = Script()
    script.ask()
    script.write(written)
    script.speak(5000)
    script.wait(2300)
    lose(script)
    come_back(script)
    assert texts(script)[1] == "one two three four"
    assert script.live(fx.StartReply)[0].text == rest


def test_a_reply_with_a_call_is_asked_for_anew() -> None:
    script = Script()
    script.ask()
    script.write(TEN_WORDS)
    script.speak(5000)
    script.call("look", "{")
    script.wait(2080)
    lose(script)
    come_back(script)
    assert [reply.text for reply in script.live(fx.StartReply)] == [None]


def test_half_a_call_without_a_word_is_made_anew() -> None:
    script = Script()
    script.ask()
    script.call("look", '{"where":')
    lose(script)
    come_back(script)
    assert [item.status for item in told_items(script)[1:]] == [ItemStatus.INCOMPLETE]
    assert script.speaking is Speaking.WAITING
    assert script.prompt[-1] == ("user", "What time is it?")
    script.call("look", '{"where": "here"}')
    script.finish("tool_calls")
    done = script.told(ResponseDone)
    assert [response.response.status for response in done] == ["cancelled", "completed"]


def test_a_whole_call_before_half_a_call_is_the_clients_to_answer() -> None:
    script = Script()
    script.ask()
    script.call("look", "{}")
    script.call("look", "{", 1, "call_b")
    lose(script)
    come_back(script)
    assert script.speaking is Speaking.IDLE and not script.works


def test_if_nothing_was_under_way_nothing_is_said() -> None:
    script = Script()
    script.ask()
    script.answer()
    script.wait(2000)
    lose(script)
    come_back(script)
    assert script.speaking is Speaking.IDLE
    script.wait(60_000)
    assert len(script.told(ResponseCreated)) == 1


def test_a_fresh_session_has_nothing_to_tell() -> None:
    script = Script()
    lose(script)
    come_back(script)
    assert script.names() == ["SessionCreated", "SessionCreated"]
    assert not script.done(TellConversation)


def test_the_last_words_of_a_reply_are_not_worth_a_reply() -> None:
    script = in_mid_reply(heard_ms=32)
    script.finish()
    script.silence(4608)
    lose(script)
    come_back(script)
    assert len(script.told(ResponseCreated)) == 1


def test_the_options_of_a_response_hold_for_its_rest() -> None:
    script = Script()
    script.type("What time is it?")
    script.create(instructions="Speak like a pirate.", input=())
    script.write(TEN_WORDS)
    script.speak(5000)
    script.wait(2080)
    lose(script)
    come_back(script)
    assert script.prompt == [
        ("system", "Speak like a pirate."),
        ("user", "What time is it?"),
        ("assistant", "one two three four"),
        ("system", RECONNECTED),
    ]


def test_a_prompt_that_nobody_heard_is_given_again() -> None:
    script = Script(ServerVad(idle_timeout_ms=5000))
    script.ask()
    script.answer()
    script.wait(6000)
    assert script.prompt[-1] == ("system", STILL_THERE)
    lose(script)
    come_back(script)
    assert script.prompt[-1] == ("system", STILL_THERE)
    assert len(script.told(ResponseCreated)) == 3


def test_whoever_still_sends_anything_is_there() -> None:
    script = in_mid_reply()
    script.wait(1500)
    script.step(ev.ClientItemRetrieve("e", "nothing"))
    script.wait(500)
    lose(script, is_silent=True)
    come_back(script)
    assert texts(script)[1] == "one two three four five six seven"
