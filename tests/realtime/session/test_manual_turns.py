"""Turns that the client ends itself, and detection that changes in mid-speech."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.notices import (
    ErrorRaised,
    InputCleared,
    InputCommitted,
    ItemAdded,
    ResponseCreated,
    ResponseDone,
    SpeechStarted,
    SpeechStopped,
    TranscriptionCompleted,
    TranscriptionFailed,
)
from realtime.session.settings import SemanticVad, ServerVad
from realtime.session.states import Listening, Speaking
from tests.realtime.session.script import SAMPLES_PER_MS, Script


def test_push_to_talk_answers_when_the_text_is_there() -> None:
    script = Script(None, hears=None)
    script.say(960)
    script.commit()
    assert script.names()[1:] == ["InputCommitted", "ItemAdded", "ItemDone"]
    script.create()
    assert script.speaking is Speaking.WAITING and not script.live(fx.StartReply)
    script.hear("What time is it?")
    assert script.prompt == [("user", "What time is it?")]
    script.answer()
    script.wait(2000)
    assert script.told(ResponseDone)[0].response.status == "completed"


def test_without_detection_there_are_no_vad_events_and_no_answers() -> None:
    script = Script(None)
    script.ask()
    script.wait(5000)
    assert script.names() == ["SessionCreated"]


def test_a_commit_never_creates_a_response() -> None:
    script = Script(None)
    script.say(960)
    script.commit()
    assert script.told(TranscriptionCompleted) and not script.told(ResponseCreated)


def test_an_empty_transcript_keeps_a_manual_item() -> None:
    script = Script(None, hears="")
    script.silence(960)
    script.commit()
    assert script.told(TranscriptionCompleted)[0].transcript == ""
    assert script.item_ids


@pytest.mark.parametrize("ms", [0, 32, 96])
def test_less_than_100_ms_cannot_be_committed(ms: int) -> None:
    script = Script(None)
    script.say(ms)
    script.commit()
    (error,) = script.told(ErrorRaised)
    assert error.code == "input_audio_buffer_commit_empty"
    assert error.client_event_id == "e_commit"
    assert f"buffer only has {ms:.2f}ms of audio" in error.message
    script.say(32)
    script.silence(96)
    script.commit()
    assert script.told(InputCommitted)


def test_100_ms_are_enough_even_when_the_last_frame_is_not_full() -> None:
    script = Script(None)
    script.say(96)
    script.step(ev.ClientCommit(None, script.position + 4 * SAMPLES_PER_MS))
    assert script.told(InputCommitted)


def test_what_is_committed_is_not_committed_again() -> None:
    script = Script(None)
    script.say(320)
    script.commit()
    script.commit()
    assert len(script.told(InputCommitted)) == len(script.told(ErrorRaised)) == 1
    script.say(320)
    script.commit()
    assert [(h.start, h.end) for h in script.done(fx.Recognise)] == [(0, 5120), (5120, 10240)]


def test_a_commit_during_speech_takes_the_announced_item_and_stops_nothing() -> None:
    script = Script()
    script.say(640)
    script.commit()
    (started,) = script.told(SpeechStarted)
    (committed,) = script.told(InputCommitted)
    assert committed.item_id == started.item_id
    assert not script.told(SpeechStopped) and not script.told(ResponseCreated)
    assert script.hearing is Listening.ONSET_QUIET
    script.say(128)
    script.silence(640)
    assert len(script.told(SpeechStarted)) == 2 and len(script.told(ResponseCreated)) == 1


def test_a_commit_in_a_pause_or_in_silence_ends_what_there_is() -> None:
    script = Script()
    script.say(640)
    script.silence(96)
    script.commit()
    assert script.hearing is Listening.QUIET
    script.silence(320)
    script.commit()
    assert len(script.told(InputCommitted)) == 2
    spans = [(heard.start / 16, heard.end / 16) for heard in script.done(fx.Recognise)]
    assert spans[-2:] == [(0, 736), (736, 1056)], "and the rest begins where it ended"


def test_a_commit_during_an_onset_takes_all_that_was_received() -> None:
    script = Script()
    script.silence(3200)
    script.say(32)
    script.commit()
    (heard,) = script.done(fx.Recognise)
    assert (heard.start, heard.end) == (0, script.position)
    assert len(script.kept) == 1, "only the new onset's audio is kept"


def test_a_commit_of_long_silence_reaches_back_as_far_as_the_ring() -> None:
    script = Script()
    script.silence(40_000)
    script.commit()
    (heard,) = script.done(fx.Recognise)
    assert heard.end - heard.start == 30_000 * SAMPLES_PER_MS


@pytest.mark.parametrize("speech_ms", [0, 32, 640])
def test_clear_drops_the_buffer_and_any_speech_in_it(speech_ms: int) -> None:
    script = Script()
    script.say(speech_ms)
    script.clear()
    assert script.told(InputCleared)
    script.silence(2000)
    assert not script.told(InputCommitted) and not script.kept


def test_speech_that_goes_on_after_a_clear_is_a_new_turn() -> None:
    script = Script()
    script.say(640)
    script.clear()
    script.say(320)
    script.silence(640)
    first, second = script.told(SpeechStarted)
    assert first.item_id != second.item_id
    assert script.told(InputCommitted)[0].item_id == second.item_id
    assert script.done(fx.Recognise)[-1].start == 640 * SAMPLES_PER_MS


def test_clear_counts_what_was_received_before_it_to_the_sample() -> None:
    script = Script(None)
    script.say(96)
    script.step(ev.ClientClear(None, script.position + 16 * SAMPLES_PER_MS))
    script.say(96)
    script.commit()
    assert "buffer only has 80.00ms" in script.told(ErrorRaised)[0].message


def test_a_cleared_push_to_talk_buffer_starts_anew() -> None:
    script = Script(None)
    script.say(640)
    script.clear()
    script.commit()
    assert script.told(ErrorRaised)[0].code == "input_audio_buffer_commit_empty"


def test_an_item_of_the_client_cannot_take_the_announced_id() -> None:
    script = Script()
    script.say(640)
    announced = script.told(SpeechStarted)[0].item_id
    script.type("Me first.", item_id=announced)
    assert script.told(ErrorRaised)[0].code == "item_create_duplicate_item_id"
    script.silence(640)
    assert script.told(InputCommitted)[0].item_id == announced


def test_a_deleted_item_holds_nobody_up() -> None:
    script = Script(None, hears=None)
    script.say(640)
    script.commit()
    script.create()
    script.delete(script.item_ids[0])
    assert not script.live(fx.Recognise)
    assert script.live(fx.StartReply) and script.prompt == []


def test_a_response_cancelled_while_it_waits_for_a_text_starts_no_reply() -> None:
    script = Script(None, hears=None)
    script.say(640)
    script.commit()
    script.create()
    script.cancel()
    script.hear("What time is it?")
    assert not script.done(fx.StartReply)


def test_a_response_that_waits_for_a_text_fails_with_it() -> None:
    script = Script(None, hears=None)
    script.say(640)
    script.commit()
    script.create()
    script.wait(12_000)
    (done,) = script.told(ResponseDone)
    assert (done.response.status, done.response.error_code) == ("failed", "transcript_timeout")
    assert script.told(TranscriptionFailed)[0].item_id == script.item_ids[0]


# ---- detection changes -------------------------------------------------------------------------


@pytest.mark.parametrize("lead_in", ["quiet", "onset", "talking", "pause", "onset in pause"])
def test_switching_to_push_to_talk_keeps_what_was_said(lead_in: str) -> None:
    script = Script(SemanticVad(), judges=None)
    script.silence(320)
    if lead_in != "quiet":
        script.say(32 if lead_in == "onset" else 640)
    if "pause" in lead_in:
        script.silence(160)
    if lead_in == "onset in pause":
        script.say(32)
    script.update(turn_detection=None)
    assert script.hearing is Listening.QUIET and not script.live(fx.AskJudge)
    script.wait(5000)
    script.say(96)
    script.commit()
    heard = script.done(fx.Recognise)[-1]
    assert heard.start == 0 and heard.end == script.position
    announced = script.told(SpeechStarted)
    if announced:
        assert script.told(ItemAdded)[0].item.id == announced[0].item_id
    assert not script.told(SpeechStopped)


def test_half_a_turn_that_was_recognised_already_is_recognised_whole_after_the_switch() -> None:
    script = Script()
    script.say(640)
    script.silence(96)
    script.hears = None
    script.update(turn_detection=None)
    script.say(640)
    script.commit()
    (item,) = script.machine.ctx.conversation
    assert item.parts[0].text is None
    script.hear("all of it")
    assert [c.transcript for c in script.told(TranscriptionCompleted)] == ["all of it"]


def test_a_recognition_under_way_ends_with_the_switch_to_push_to_talk() -> None:
    script = Script(hears=None)
    script.say(640)
    script.silence(96)
    script.update(turn_detection=None)
    assert not script.works


def test_what_push_to_talk_had_gathered_can_still_be_committed_under_detection() -> None:
    script = Script(None)
    script.say(640)
    script.update(turn_detection=ServerVad())
    script.commit()
    (heard,) = script.done(fx.Recognise)
    assert (heard.start, heard.end) == (0, 640 * SAMPLES_PER_MS)


@pytest.mark.parametrize("after", [ServerVad(), ServerVad(silence_duration_ms=200), SemanticVad()])
@pytest.mark.parametrize("lead_in", ["quiet", "onset", "talking", "pause"])
def test_switching_between_detectors_drops_no_turn(
    lead_in: str, after: ServerVad | SemanticVad
) -> None:
    script = Script(SemanticVad() if isinstance(after, ServerVad) else ServerVad())
    if lead_in != "quiet":
        script.say(32 if lead_in == "onset" else 640)
    if lead_in == "pause":
        script.silence(96)
    script.update(turn_detection=after)
    script.say(640)
    script.silence(5000)
    assert len(script.told(InputCommitted)) == 1
    assert len(script.told(ResponseCreated)) == 1


def test_switching_from_push_to_talk_to_detection_listens_from_there() -> None:
    script = Script(None)
    script.say(640)
    script.update(turn_detection=ServerVad())
    assert not script.kept
    script.silence(320)
    script.ask()
    assert len(script.told(InputCommitted)) == 1


def test_speech_announced_before_push_to_talk_is_stopped_when_detection_comes_back() -> None:
    script = Script()
    script.say(640)
    script.update(turn_detection=None)
    script.say(640)
    script.update(turn_detection=ServerVad())
    (started,) = script.told(SpeechStarted)
    (stopped,) = script.told(SpeechStopped)
    assert stopped.item_id == started.item_id
    script.silence(320)
    script.ask()
    assert len(script.told(SpeechStarted)) == 2
