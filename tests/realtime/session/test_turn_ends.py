"""When a turn ends: at an exact silence, at a judge's word, or when patience is over."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.notices import (
    InputCommitted,
    ItemAdded,
    ResponseCreated,
    ResponseDone,
    SpeechStarted,
    SpeechStopped,
    TranscriptionCompleted,
    TranscriptionFailed,
)
from realtime.session.settings import Eagerness, SemanticVad, ServerVad
from realtime.session.states import Listening, Speaking
from tests.realtime.session.script import Script


@pytest.mark.parametrize("silence_ms", [10, 200, 333, 500, 512, 1000, 2000])
def test_server_vad_ends_a_turn_at_exactly_its_silence(silence_ms: int) -> None:
    script = Script(ServerVad(silence_duration_ms=silence_ms))
    script.silence(960)
    script.say(640)
    script.silence(silence_ms + 96)
    (stopped,) = script.told(SpeechStopped)
    assert stopped.audio_end_ms == 960 + 640 + silence_ms


@pytest.mark.parametrize(("padding_ms", "start_ms"), [(0, 960), (300, 660), (5000, 0)])
def test_the_announced_start_lies_before_the_voice_by_the_padding(
    padding_ms: int, start_ms: int
) -> None:
    script = Script(ServerVad(prefix_padding_ms=padding_ms))
    script.silence(960)
    script.say(320)
    (started,) = script.told(SpeechStarted)
    assert started.audio_start_ms == start_ms


def test_the_recogniser_hears_at_least_300_ms_before_the_voice() -> None:
    script = Script(ServerVad(prefix_padding_ms=0))
    script.silence(960)
    script.ask()
    (heard,) = script.done(fx.Recognise)
    assert heard.start == (960 - 400) * 16


def test_a_turn_is_stopped_committed_and_answered_in_this_order() -> None:
    script = Script()
    script.ask()
    assert script.names()[1:] == [
        "SpeechStarted",
        "SpeechStopped",
        "InputCommitted",
        "ItemAdded",
        "ItemDone",
        "TranscriptionDelta",
        "TranscriptionCompleted",
        "ResponseCreated",
    ]
    added = script.told(ItemAdded)[0]
    assert added.item.id == script.told(SpeechStarted)[0].item_id
    assert added.item.parts[0].text is None, "the wire gets the transcript later"


def test_speech_is_announced_within_180_ms_in_every_state() -> None:
    for prepare in (lambda s: None, lambda s: (s.ask(), s.write("Yes."), s.speak(5000))):
        script = Script()
        prepare(script)
        before = script.position
        while len(script.told(SpeechStarted)) < (2 if before else 1):
            script.say(32)
        assert (script.position - before) / 16 <= 180


def test_chatter_of_the_detector_inside_a_word_moves_no_start() -> None:
    script = Script()
    for speech in (0.95, 0.95, 0.01, 0.95, 0.4, 0.95, 0.01, 0.95):
        script.frame(speech)
    (started,) = script.told(SpeechStarted)
    assert started.audio_start_ms == 0
    assert script.hearing is Listening.TALKING


def test_two_700_ms_pauses_in_one_sentence_make_one_turn() -> None:
    script = Script(SemanticVad(), judges=0.1)
    for _ in range(2):
        script.say(640)
        script.silence(704)
    script.say(640)
    script.judges = 0.9
    script.silence(704)
    assert len(script.told(SpeechStarted)) == len(script.told(InputCommitted)) == 1
    assert script.live(fx.StartReply)


def test_a_click_in_a_pause_does_not_restart_the_silence() -> None:
    script = Script(ServerVad(silence_duration_ms=500))
    script.say(640)
    script.silence(320)
    script.click()
    script.silence(320)
    (stopped,) = script.told(SpeechStopped)
    assert stopped.audio_end_ms == 640 + 500


def test_speech_after_a_pause_goes_on_with_the_turn_and_hears_it_anew() -> None:
    script = Script(hears=None)
    script.say(640)
    script.silence(320)
    (early,) = script.done(fx.Recognise)
    script.say(640)
    assert fx.Abort(early.request) in script.effects
    script.step(ev.TranscriptFinal(early.request, "half of it"))
    script.silence(640)
    script.hear("all of it")
    (completed,) = script.told(TranscriptionCompleted)
    assert completed.transcript == "all of it"


def test_a_failed_recognition_of_half_a_turn_does_not_fail_the_whole() -> None:
    script = Script(hears=None)
    script.say(640)
    script.silence(320)
    (early,) = script.live(fx.Recognise)
    del script.works[early.request]
    script.step(ev.TranscriptFailed(early.request, "asr_failed", "Busy."))
    script.say(640)
    script.silence(640)
    script.hear("all of it")
    assert not script.told(TranscriptionFailed)
    assert script.live(fx.StartReply)


# ---- semantic_vad ------------------------------------------------------------------------------


def test_a_sure_judge_ends_the_turn_once_a_breath_is_over() -> None:
    script = Script(SemanticVad(), judges=1.0)
    script.say(640)
    script.silence(1000)
    assert script.told(SpeechStopped)[0].audio_end_ms == 640 + 576


def test_a_turn_whose_answer_is_coming_is_listened_to_until_it_can_be_heard() -> None:
    script = Script(SemanticVad(), judges=1.0, drafts=True)
    script.say(640)
    script.silence(800)
    assert not script.told(SpeechStopped)
    script.write("It is noon.")
    assert not script.told(SpeechStopped)
    script.speak(400)
    assert script.told(SpeechStopped)[0].audio_end_ms == 640 + 800
    assert script.egress.heard, "the answer leaves in the same step"


def test_a_slow_answer_does_not_hold_the_end_of_a_turn_back_for_long() -> None:
    script = Script(SemanticVad(), judges=1.0, drafts=True)
    script.say(640)
    script.silence(2000)
    assert script.told(SpeechStopped)[0].audio_end_ms == 640 + 1504


def test_a_turn_that_trails_off_is_waited_for() -> None:
    ends_ms = {}
    for text in ("I would like to fly to Rome.", "I would like to fly to Rome and."):
        script = Script(SemanticVad(), judges=0.2, hears=text)
        script.say(640)
        script.silence(3000)
        ends_ms[text] = script.told(SpeechStopped)[0].audio_end_ms - 640
    assert list(ends_ms.values()) == [864, 2016]


@pytest.mark.parametrize(
    ("eagerness", "longest_ms"),
    [
        (Eagerness.LOW, 8000),
        (Eagerness.MEDIUM, 4000),
        (Eagerness.AUTO, 4000),
        (Eagerness.HIGH, 2000),
    ],
)
def test_eagerness_bounds_the_wait_of_a_judge_that_never_answers(
    eagerness: Eagerness, longest_ms: int
) -> None:
    script = Script(SemanticVad(eagerness=eagerness), judges=None)
    script.say(640)
    script.silence(9000)
    waited_ms = script.told(SpeechStopped)[0].audio_end_ms - 640
    assert longest_ms <= waited_ms < longest_ms + 32


def test_eagerness_decides_what_a_doubtful_verdict_is_worth() -> None:
    ends_ms = {}
    for eagerness in (Eagerness.HIGH, Eagerness.MEDIUM, Eagerness.LOW):
        script = Script(SemanticVad(eagerness=eagerness), judges=0.4)
        script.say(640)
        script.silence(9000)
        ends_ms[eagerness] = script.told(SpeechStopped)[0].audio_end_ms - 640
    assert ends_ms[Eagerness.HIGH] < ends_ms[Eagerness.MEDIUM] < ends_ms[Eagerness.LOW]


def test_the_judge_is_asked_at_its_own_silences_and_no_more() -> None:
    script = Script(SemanticVad(eagerness=Eagerness.LOW), judges=0.0)
    script.say(640)
    script.silence(2330)
    asked_ms = [ask.end / 16 - 640 for ask in script.done(fx.AskJudge)]
    assert asked_ms == [768, 1152, 1600, 2208]


def test_without_a_working_judge_the_last_question_decides() -> None:
    script = Script(SemanticVad(), judges=None)
    script.say(640)
    script.silence(512)
    (ask,) = script.live(fx.AskJudge)
    del script.works[ask.request]
    script.step(ev.JudgeFailed(ask.request, "judge_failed", "Out of memory."))
    script.silence(2000)
    waited_ms = script.told(SpeechStopped)[0].audio_end_ms - 640
    assert 800 <= waited_ms < 800 + 32
    assert not script.done(fx.AskJudge)[1:], "a broken judge is left alone"


def test_a_slow_judge_is_asked_one_question_at_a_time() -> None:
    script = Script(SemanticVad(), judges=None)
    script.say(640)
    script.silence(1000)
    assert len(script.live(fx.AskJudge)) == 1
    script.verdict(0.9)
    assert script.told(SpeechStopped)


def test_a_verdict_on_a_pause_that_is_over_is_ignored() -> None:
    script = Script(SemanticVad(), judges=None)
    script.say(640)
    script.silence(544)
    (late,) = script.live(fx.AskJudge)
    script.say(320)
    assert not script.live(fx.AskJudge), "the question is aborted"
    script.step(ev.JudgeAnswered(late.request, 1.0))
    assert script.hearing is Listening.TALKING
    script.silence(96)
    script.step(ev.JudgeAnswered(late.request, 1.0))
    assert script.hearing is Listening.PAUSE
    assert not script.told(SpeechStopped)


def test_a_verdict_during_a_click_counts_once_the_click_is_known_for_one() -> None:
    script = Script(SemanticVad(), judges=None)
    script.say(640)
    script.silence(544)
    script.say(32)
    script.verdict(0.9)
    assert script.hearing is Listening.ONSET_PAUSE
    assert not script.told(SpeechStopped)
    script.silence(416)
    assert script.told(SpeechStopped)


# ---- turns that end otherwise ------------------------------------------------------------------


@pytest.mark.parametrize("detection", [ServerVad(), SemanticVad()])
def test_a_microphone_muted_in_mid_word_ends_the_turn(detection: ServerVad | SemanticVad) -> None:
    script = Script(detection)
    script.say(640)
    script.wait(999)
    assert script.hearing is Listening.TALKING
    script.wait(1100)
    assert script.hearing is Listening.QUIET
    assert script.told(InputCommitted)
    assert fx.ResetHearing() in script.effects, "what comes next stands alone"


def test_a_microphone_muted_during_an_onset_forgets_it() -> None:
    script = Script()
    script.say(32)
    script.wait(1001)
    assert script.hearing is Listening.QUIET
    assert script.machine.next_deadline_ms() is None
    script.silence(64)
    assert not script.told(SpeechStarted)


def test_after_a_verdict_no_gap_of_audio_is_waited_for() -> None:
    script = Script(SemanticVad(), judges=None)
    script.say(640)
    script.silence(224)
    script.verdict(0.9)
    script.silence(480)
    assert script.hearing is Listening.QUIET
    before = len(script.effects)
    script.wait(3000)
    assert not [e for e in script.effects[before:] if isinstance(e, fx.ResetHearing)]


def test_a_monologue_is_committed_piece_by_piece_and_answered_once_at_its_end() -> None:
    script = Script()
    script.say(60_000)
    assert len(script.told(InputCommitted)) == 2
    assert not script.told(ResponseCreated)
    script.silence(640)
    assert len(script.told(InputCommitted)) == 3
    assert len(script.told(ResponseCreated)) == 1
    assert [text for role, text in script.prompt if role == "user"] == [
        "\n".join(["What time is it?"] * 3)
    ]
    assert all((heard.end - heard.start) / 16 <= 28_100 for heard in script.done(fx.Recognise))


def test_nothing_said_leaves_no_item_and_no_response() -> None:
    script = Script(hears="  ")
    script.ask()
    assert script.names()[1:] == ["SpeechStarted", "SpeechStopped"]
    assert not script.kept and not script.item_ids


def test_a_transcript_comes_to_its_own_turn_however_late() -> None:
    script = Script(hears=None)
    script.ask()
    script.ask()
    first, second = script.live(fx.Recognise)
    del script.works[second.request], script.works[first.request]
    script.step(ev.TranscriptFinal(second.request, "second"))
    assert not script.told(InputCommitted), "turns conclude in their order"
    script.step(ev.TranscriptFinal(first.request, "first"))
    texts = [item.parts[0].text for item in script.machine.ctx.conversation]
    assert texts == ["first", "second"]
    assert [s.item_id for s in script.told(SpeechStarted)] == script.item_ids
    assert len(script.told(ResponseCreated)) == 1


@pytest.mark.parametrize("ms", [640, 6400])
def test_a_recogniser_that_never_answers_fails_the_turn_in_time(ms: int) -> None:
    script = Script(hears=None)
    script.ask(ms)
    script.wait(10_000 + ms + 1000)
    (failed,) = script.told(TranscriptionFailed)
    assert failed.code == "transcript_timeout"
    (done,) = script.told(ResponseDone)
    assert (done.response.status, done.response.error_code) == ("failed", "transcript_timeout")
    assert script.done(fx.Observe)[0].timeline.status == "failed"
    assert not script.works
    assert script.speaking is Speaking.IDLE


def test_partial_text_ends_nothing() -> None:
    script = Script(hears=None)
    script.ask()
    (heard,) = script.live(fx.Recognise)
    assert script.step(ev.TranscriptPartial(heard.request, "What")) == []


def test_five_minutes_appended_at_once_are_heard_on_audio_time() -> None:
    """Nothing depends on the clock: the same turns at the same positions as in real time."""
    script = Script(ServerVad(create_response=False))
    for _ in range(50):
        for speech in [0.95] * 100 + [0.01] * 100:
            script.position += 512
            script.step(ev.AudioFrame(script.position, speech, -30.0))
    assert [s.audio_end_ms for s in script.told(SpeechStopped)] == [
        k * 6400 + 3200 + 500 for k in range(50)
    ]
    assert len(script.item_ids) == 50
