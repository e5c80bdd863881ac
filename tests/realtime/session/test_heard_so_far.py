"""The words of a turn that is still being spoken, as a watcher is told of them."""

from __future__ import annotations

from realtime.session import effects as fx
from realtime.session.notices import (
    HeardSoFar,
    InputCommitted,
    SpeechStarted,
    SpeechStopped,
    TranscriptionCompleted,
)
from realtime.session.settings import SemanticVad, ServerVad, SessionSettings
from realtime.session.states import Listening
from tests.realtime.session.long_reply import speaking
from tests.realtime.session.losses import lose
from tests.realtime.session.script import Script


def talking() -> Script:
    """In the middle of a sentence; recognitions wait."""
    script = Script(SemanticVad(), hears=None, judges=0.1, drafts=True)
    script.say(640)
    return script


def test_words_are_told_while_the_user_talks() -> None:
    script = talking()
    script.glimpse("What")
    script.say(320)
    script.glimpse("What time")
    (started,) = script.told(SpeechStarted)
    details = [detail for detail in script.details if isinstance(detail, HeardSoFar)]
    assert details == [
        HeardSoFar(started.item_id, "What"),
        HeardSoFar(started.item_id, "What time"),
    ]


def test_what_has_not_changed_is_not_told_again() -> None:
    script = talking()
    for text in ("", "What", "What", "What "):
        script.glimpse(text)
    assert script.heard_so_far == ["What"]


def test_a_pause_tells_what_the_recogniser_made_of_the_turn() -> None:
    script = talking()
    script.glimpse("What time")
    script.silence(96)
    script.hear("What time is it?")
    assert script.heard_so_far == ["What time", "What time is it?"]
    script.say(320)
    script.glimpse("What time is it in")
    assert script.heard_so_far[2:] == ["What time is it in"]


def test_what_was_settled_before_a_long_pause_stands_before_what_follows() -> None:
    script = talking()
    script.silence(96)
    script.hear("What time is it")
    script.silence(320)
    script.say(320)
    script.glimpse("in Rome")
    assert script.heard_so_far == ["What time is it", "What time is it in Rome"]


def test_nothing_is_told_after_the_transcript_is_complete() -> None:
    script = Script(ServerVad(), hears=None, drafts=True)
    script.say(640)
    listen = script.live(fx.Listen)[0].request
    script.glimpse("What time")
    script.silence(640)
    script.hear("What time is it?")
    assert script.told(TranscriptionCompleted)
    told = list(script.heard_so_far)
    script.works[listen] = script.done(fx.Listen)[0]
    script.glimpse("What time is it now?")
    assert script.heard_so_far == told


def test_words_over_the_agents_speech_are_told_once_they_count() -> None:
    script = speaking()
    script.say(320)
    script.glimpse("mm-hm")
    assert script.heard_so_far == [], "what only wants it to go on is no turn"
    script.glimpse("No, wait a moment")
    assert script.hearing is Listening.TALKING
    assert script.heard_so_far == ["No, wait a moment"]
    names = [
        type(getattr(effect, "notice", None) or getattr(effect, "detail", None)).__name__
        for effect in script.effects
    ]
    assert names.index("SpeechStarted") + 1 == names.index("HeardSoFar")


def test_a_word_that_was_weighed_is_told_with_its_turn() -> None:
    script = speaking()
    script.say(320)
    script.silence(96)
    script.hear("Stop.")
    assert script.told(SpeechStarted) and script.heard_so_far == ["Stop."]


def test_a_turn_that_comes_to_nothing_takes_its_words_back() -> None:
    script = talking()
    script.glimpse("Thank you")
    script.silence(96)
    script.hear("")
    script.silence(4000)
    (stopped,) = script.told(SpeechStopped)
    assert not script.told(InputCommitted)
    assert script.heard_so_far[-1] == ""
    assert [d.item_id for d in script.details if isinstance(d, HeardSoFar)][-1] == stopped.item_id


def test_a_cleared_turn_takes_its_words_back() -> None:
    script = talking()
    script.glimpse("What time")
    script.clear()
    assert script.heard_so_far == ["What time", ""]


def test_a_lost_clients_words_go_with_it() -> None:
    script = talking()
    script.glimpse("What time")
    lose(script)
    assert script.heard_so_far == ["What time", ""]


def test_without_transcription_no_words_are_told() -> None:
    settings = SessionSettings(turn_detection=SemanticVad(), transcription=None)
    script = Script(settings=settings, hears=None, drafts=True)
    script.say(640)
    script.glimpse("What time")
    assert script.heard_so_far == []
