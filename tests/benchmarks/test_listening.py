"""What a listener hears, on synthetic sound and intervals."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.listening import (
    Outcome,
    Span,
    audible,
    is_take_over,
    joined,
    played,
    react,
)
from realtime.commands.playback import Playback, Segment

RATE_HZ = 24_000
LOUD, FAINT = 8000, 100  # -12 and -50 dBFS


def tone(ms: int, level: int = LOUD) -> np.ndarray:
    """A square wave: its root mean square is its level."""
    wave = np.full(RATE_HZ * ms // 1000, level, np.int16)
    wave[::2] *= -1
    return wave


def test_silence_is_a_level_and_not_an_event() -> None:
    pcm = np.concatenate([tone(100), tone(200, FAINT), tone(50)])
    assert audible([Segment("a", 1000.0, pcm)], RATE_HZ) == [
        Span(1000.0, 1100.0),
        Span(1300.0, 1350.0),
    ]


def test_frames_that_play_without_a_gap_are_one_sound() -> None:
    segments = [Segment("a", 0.0, tone(40)), Segment("a", 40.0, tone(40))]
    assert audible(segments, RATE_HZ) == [Span(0.0, 80.0)]


def test_another_item_is_not_heard() -> None:
    segments = [Segment("a", 0.0, tone(40)), Segment("b", 40.0, tone(40))]
    assert audible(segments, RATE_HZ, "b") == [Span(40.0, 80.0)]


def test_what_was_flushed_was_never_heard() -> None:
    playback = Playback(RATE_HZ)
    playback.arrive(0.0, "a", tone(1000))
    playback.flush(235.0)
    assert audible(playback.segments, RATE_HZ) == [Span(0.0, 235.0)]


def test_a_loudspeaker_that_runs_dry_is_silent_without_a_flush() -> None:
    playback = Playback(RATE_HZ)
    playback.arrive(0.0, "a", tone(300))
    playback.arrive(900.0, "a", tone(100))
    assert audible(playback.segments, RATE_HZ) == [Span(0.0, 300.0), Span(900.0, 1000.0)]
    assert played(playback.segments, RATE_HZ) == [Span(0.0, 300.0), Span(900.0, 1000.0)]


def test_spans_are_joined_across_small_gaps_in_any_order() -> None:
    spans = [Span(50.0, 60.0), Span(0.0, 40.0), Span(100.0, 110.0)]
    assert joined(spans, 10.0) == [Span(0.0, 60.0), Span(100.0, 110.0)]


@pytest.mark.parametrize(
    ("audible_ms", "words", "expected"),
    [(999, None, False), (1000, None, True), (600, 3, False), (600, 4, True)],
)
def test_a_second_or_more_than_three_words_are_a_take_over(
    audible_ms: float, words: int | None, expected: bool
) -> None:
    half_ms = audible_ms / 2
    sound = [Span(0.0, half_ms), Span(5000.0, 5000.0 + half_ms)]
    assert is_take_over(sound, words) is expected


SOUND = Span(2000.0, 2600.0)


def test_a_reply_that_was_cut_has_yielded_where_it_was_last_heard() -> None:
    heard = [Span(0.0, 1900.0), Span(1950.0, 2210.0)]
    reaction = react(SOUND, [Span(0.0, 2300.0)], heard, was_cut=True)
    assert (reaction.outcome, reaction.stop_ms) == (Outcome.YIELDED, 210.0)


def test_a_reply_that_was_cut_in_its_own_pause_stopped_at_once() -> None:
    reaction = react(SOUND, [Span(0.0, 2300.0)], [Span(0.0, 1900.0)], was_cut=True)
    assert (reaction.outcome, reaction.stop_ms) == (Outcome.YIELDED, 0.0)


def test_a_pause_of_the_reply_itself_is_no_gap() -> None:
    heard = [Span(0.0, 2100.0), Span(2700.0, 6000.0)]
    reaction = react(SOUND, [Span(0.0, 6000.0)], heard, was_cut=False)
    assert reaction.outcome is Outcome.TALKED_ON


def test_a_reply_that_waits_and_goes_on_has_resumed_after_a_gap() -> None:
    reply = [Span(0.0, 2200.0), Span(2900.0, 6000.0)]
    heard = [Span(0.0, 2150.0), Span(2960.0, 6000.0)]
    reaction = react(SOUND, reply, heard, was_cut=False)
    assert reaction.outcome is Outcome.RESUMED
    assert (reaction.stop_ms, reaction.gap_ms) == (150.0, 810.0)


def test_a_gap_before_the_sound_does_not_count() -> None:
    reply = [Span(0.0, 1000.0), Span(1500.0, 6000.0)]
    assert react(SOUND, reply, reply, was_cut=False).outcome is Outcome.TALKED_ON


def test_a_reply_that_was_over_before_or_with_the_sound_measures_nothing() -> None:
    over, ending = [Span(0.0, 1500.0)], [Span(0.0, 2700.0)]
    assert react(SOUND, over, over, was_cut=True).outcome is Outcome.UNMEASURED
    assert react(SOUND, ending, ending, was_cut=False).outcome is Outcome.UNMEASURED


def test_a_reply_that_outlasts_a_long_sound_by_far_need_not_hear_it_out() -> None:
    long_sound, reply = Span(2000.0, 9000.0), [Span(0.0, 5000.0)]
    assert react(long_sound, reply, reply, was_cut=False).outcome is Outcome.TALKED_ON
