"""What `talk` believes that a listener hears, and what it makes of a conversation's events."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.commands.playback import Playback
from realtime.commands.talk import describe
from realtime.commands.turns import Step, TurnLog, last_voiced_sample

RATE_HZ = 24_000


def tone(length_ms: int, level: int = 8000) -> np.ndarray:
    return np.full(length_ms * RATE_HZ // 1000, level, np.int16)


def test_audio_plays_from_its_arrival_and_queues_behind_what_plays() -> None:
    playback = Playback(RATE_HZ)
    playback.arrive(1000, "a", tone(100))
    playback.arrive(1010, "a", tone(100))  # early: plays when the first has ended
    playback.arrive(1500, "a", tone(100))  # late: there was a gap
    assert [segment.start_ms for segment in playback.segments] == [1000, 1100, 1500]
    assert playback.end_ms == 1600
    assert playback.gaps_ms("a") == [300]
    assert playback.heard_ms("a") == 300


def test_a_flush_silences_at_once_and_tells_what_was_heard() -> None:
    playback = Playback(RATE_HZ)
    playback.arrive(0, "a", tone(1000))
    playback.arrive(0, "b", tone(1000))
    assert playback.flush(1250) == ("b", 250)
    assert playback.heard_ms("a") == 1000
    assert playback.end_ms == 1250
    playback.arrive(1300, "c", tone(100))
    assert playback.segments[-1].start_ms == 1300


def test_a_flush_of_silence_tells_nothing() -> None:
    playback = Playback(RATE_HZ)
    assert playback.flush(10) is None
    playback.arrive(0, "a", tone(100))
    assert playback.flush(100) is None
    assert playback.heard_ms("a") == 100


def test_the_first_sound_is_not_the_first_sample() -> None:
    playback = Playback(RATE_HZ)
    playback.arrive(0, "a", tone(50, level=0))
    assert playback.first_audible_ms("a") is None
    playback.arrive(0, "a", np.concatenate([tone(30, level=20), tone(30)]))
    assert playback.first_audible_ms("a") == pytest.approx(80)


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.integers(0, 400), st.booleans()), min_size=1, max_size=30
    )
)
def test_a_listener_hears_one_thing_at_a_time(steps: list[tuple[int, int, bool]]) -> None:
    playback, now_ms = Playback(RATE_HZ), 0.0
    for wait_ms, length_ms, flushes in steps:
        now_ms += wait_ms
        if flushes:
            playback.flush(now_ms)
            assert playback.end_ms <= now_ms
            assert playback.playing_at(now_ms) is None
        else:
            playback.arrive(now_ms, "a", tone(length_ms))
    for before, after in zip(playback.segments, playback.segments[1:], strict=False):
        assert after.start_ms >= before.start_ms + len(before.pcm) * 1000 / RATE_HZ - 0.05
    heard = playback.render(0)
    assert np.count_nonzero(heard) == pytest.approx(
        sum(len(segment.pcm) for segment in playback.segments), abs=len(steps)
    )


def test_the_end_of_speech_is_its_last_loud_window() -> None:
    pcm = np.concatenate([tone(100, 0), tone(200), tone(300, 10)])
    assert last_voiced_sample(pcm, len(pcm)) == 300 * RATE_HZ // 1000
    assert last_voiced_sample(pcm, 150 * RATE_HZ // 1000) == 150 * RATE_HZ // 1000
    assert last_voiced_sample(tone(100, 0), 2400) is None
    assert last_voiced_sample(pcm, 0) is None


def events_of_a_turn() -> list[tuple[float, dict[str, Any]]]:
    audio = base64.b64encode(tone(100).tobytes()).decode()
    at = {"response_id": "r", "item_id": "A"}
    return [
        (100, {"type": "input_audio_buffer.speech_started", "item_id": "U", "audio_start_ms": 0}),
        (900, {"type": "input_audio_buffer.speech_stopped", "item_id": "U", "audio_end_ms": 700}),
        (901, {"type": "input_audio_buffer.committed", "item_id": "U"}),
        (902, {"type": "response.created", "response": {"id": "r"}}),
        (
            905,
            {
                "type": "conversation.item.input_audio_transcription.completed",
                "item_id": "U",
                "transcript": "hello",
            },
        ),
        (950, {"type": "response.output_audio_transcript.delta", "delta": "hi ", **at}),
        (960, {"type": "response.output_audio.delta", "delta": audio, **at}),
        (970, {"type": "response.output_audio_transcript.delta", "delta": "there", **at}),
        (980, {"type": "response.done", "response": {"id": "r", "status": "completed"}}),
    ]


def test_events_become_a_turn_with_a_timeline() -> None:
    playback = Playback(RATE_HZ)
    log = TurnLog(playback, speech_end_ms=lambda audio_end_ms: audio_end_ms - 200.0)
    was_open = []
    for at_ms, event in events_of_a_turn():
        log.observe(at_ms, event)
        was_open.append(log.is_open)
    # Speaking, then what may or may not be answered, then answering.
    assert not log.is_undecided(1000)
    assert was_open == [True, False, False, True, True, True, True, True, False]
    log.complete_sounds()
    (turn,) = log.turns
    assert (turn.heard, turn.said, turn.status) == ("hello", "hi there", "completed")
    assert turn.delay_ms == 460
    assert describe(1, turn) == (
        "turn 1 (ms): speech end +0, speech_stopped +400, committed +401, created +402, "
        "first audio +460, first sound +460, done +480"
    )


def test_a_typed_question_and_a_failed_answer_make_a_turn_too() -> None:
    log = TurnLog(Playback(RATE_HZ), speech_end_ms=lambda _ms: None)
    log.observe(1, {"type": "response.created", "response": {"id": "r"}})
    failure = {"type": "failed", "error": {"code": "llm_unreachable", "message": "no server"}}
    response = {"id": "r", "status": "failed", "status_details": failure}
    log.observe(2, {"type": "response.done", "response": response})
    error = {"type": "server_error", "code": "llm_unreachable", "message": "no server"}
    log.observe(3, {"type": "error", "error": error})
    (turn,) = log.turns
    assert (turn.status, turn.problem, turn.delay_ms) == ("failed", "no server", None)
    assert log.errors == ["llm_unreachable: no server"]
    assert Step.DONE in turn.steps_ms


def test_a_turn_that_may_yet_be_committed_is_waited_for_in_a_bound() -> None:
    log = TurnLog(Playback(RATE_HZ), speech_end_ms=lambda _ms: None)
    started, stopped = (event for _, event in events_of_a_turn()[:2])
    log.observe(100, started)
    assert log.is_open
    log.observe(900, stopped)
    assert not log.is_open
    assert log.is_undecided(900 + 11_999)
    assert not log.is_undecided(900 + 12_000)
