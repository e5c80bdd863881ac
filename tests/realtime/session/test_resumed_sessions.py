"""Sessions that are lost and found again, and those that nobody comes back to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.effects import TellConversation
from realtime.session.items import Item, ItemKind, Part, PartKind, Role
from realtime.session.machine import Machine
from realtime.session.notices import ResponseCreated, SessionCreated, TranscriptionCompleted
from realtime.session.prompt import RECONNECTED
from realtime.session.settings import ServerVad, SessionSettings, SessionType
from realtime.session.states import Lifecycle
from tests.realtime.session.losses import TEN_WORDS, come_back, in_mid_reply, lose, texts
from tests.realtime.session.script import RATE_HZ, Script


def recite(script: Script, words: Sequence[str]) -> None:
    """Half a second for each, with their ends."""
    script.write(" ".join(words))
    ends = [len(" ".join(words[: count + 1])) for count in range(len(words))]
    samples = RATE_HZ // 2
    marks = tuple((samples * (count + 1), end) for count, end in enumerate(ends))
    script.speak(500 * len(words), words=marks)


def test_three_losses_in_one_reply_repeat_no_word_and_lose_none() -> None:
    words = TEN_WORDS.split()
    script = in_mid_reply(heard_ms=1024)
    for heard, more in ((2, 3), (5, 4), (9, 1)):
        lose(script)
        come_back(script)
        said = " ".join(text for role, text in script.prompt if role == "assistant")
        assert said.split() == words[:heard]
        assert script.prompt[-1] == ("system", RECONNECTED)
        recite(script, words[heard:])
        script.wait(500 * more + 40)
    script.finish()
    script.wait(1000)
    script.create()
    said = " ".join(text for role, text in script.prompt if role == "assistant")
    assert said.split() == words


def test_a_client_that_is_lost_before_the_answer_began_still_gets_it() -> None:
    script = in_mid_reply()
    lose(script)
    for _ in range(3):
        come_back(script)
        assert script.prompt[-1] == ("system", RECONNECTED)
        lose(script)
    come_back(script)
    assert texts(script) == ["What time is it?", "one two three four"]


def test_the_items_are_told_in_order_with_the_one_before() -> None:
    script = Script()
    script.type("first", "a")
    script.type("second", "b")
    script.type("zeroth", "z", "root")
    script.delete("a")
    lose(script)
    come_back(script)
    (told,) = script.done(TellConversation)
    assert [(item.id, before) for item, before in told.items] == [("z", None), ("b", "z")]
    assert script.names()[-1] == "SessionCreated"


def test_text_that_was_still_to_be_heard_is_heard_after_the_return() -> None:
    script = Script(hears=None)
    script.say(640)
    script.commit()
    recording = Part(PartKind.INPUT_AUDIO, audio_handle="recording", audio_ms=900)
    item = Item("mine", ItemKind.MESSAGE, role=Role.USER, parts=(recording,))
    script.step(ev.ClientItemCreate("e", item))
    spoken = script.item_ids[0]
    script.create()
    lose(script)
    assert not script.works
    come_back(script)
    asked = script.live(fx.RecogniseHandle)
    assert [work.audio_handle for work in asked] == [spoken, "recording"]
    assert not script.live(fx.StartReply), "the answer waits for the words"
    script.hear("What time is it?")
    script.hear("In Rome.")
    assert script.prompt == [("user", "What time is it?\nIn Rome.")]
    transcripts = [done.transcript for done in script.told(TranscriptionCompleted)]
    assert transcripts == ["What time is it?", "In Rome."]


def test_an_item_deleted_meanwhile_is_not_heard() -> None:
    script = Script(hears=None)
    script.say(640)
    script.commit()
    lose(script)
    come_back(script)
    script.delete(script.item_ids[0])
    lose(script)
    come_back(script)
    assert not script.works


def test_a_transcription_session_goes_on() -> None:
    base = Script().machine.ctx.settings
    settings = SessionSettings(
        type=SessionType.TRANSCRIPTION,
        turn_detection=ServerVad(),
        transcription=base.transcription,
    )
    script = Script(settings=settings)
    script.ask()
    lose(script)
    come_back(script)
    script.ask()
    assert not script.told(ResponseCreated)
    assert len(script.told(TranscriptionCompleted)) == 2
    assert texts(script) == ["What time is it?"]


def test_positions_go_on_and_old_audio_is_in_no_new_turn() -> None:
    script = Script(None)
    script.say(640)
    lose(script)
    script.step(ev.Reconnected(900 * 16))  # some of it came while the socket broke
    script.position = 900 * 16
    script.say(320)
    script.commit()
    (heard,) = script.done(fx.Recognise)
    assert (heard.start, heard.end) == (900 * 16, 1220 * 16)


# ---- time --------------------------------------------------------------------------------------


@pytest.mark.parametrize("resume_ms", [1000.0, 60_000.0, 600_000.0])
def test_a_session_waits_as_long_as_it_was_told(resume_ms: float) -> None:
    script = Script(is_open=False)
    script.step(ev.Opened(7, SessionSettings(), "browser", False, 0, resume_ms=resume_ms))
    lose(script)
    script.wait(resume_ms - 1)
    assert script.machine.lifecycle is Lifecycle.PARKED
    script.wait(1)
    assert script.machine.lifecycle is Lifecycle.CLOSED
    come_back(script)
    assert len(script.told(SessionCreated)) == 1


def test_a_parked_session_ends_with_its_own_time() -> None:
    script = Script(is_open=False)
    script.step(ev.Opened(7, SessionSettings(), "browser", False, 0, lasts_ms=30_000))
    script.wait(20_000)
    lose(script)
    script.wait(10_000)
    assert script.machine.lifecycle is Lifecycle.CLOSED


def test_a_resumed_conversation_replays() -> None:
    script = in_mid_reply()
    lose(script, is_silent=True, unsent=((script.item_ids[1], 960),))
    script.wait(1000)
    come_back(script)
    script.answer("five six", 1000)
    machine = Machine()
    for event, now_ms, effects in script.log:
        assert machine.step(event, now_ms) == effects
