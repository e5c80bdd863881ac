"""Sound leaves as early as it can, never too late, and in few pieces."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES
from pipelines.higgs.reply.emission import LOW_LEAD_MS, MOST_FRAMES, SAFETY_MS, Emission, Piece
from tests.pipelines.higgs.listening import STEP_S, frame_times, play, play_at_once

LAG_SAMPLES = 9984  # 10.4 frames
LATENCY_S = 0.003  # of the codec
FRAME_S = FRAME_SAMPLES / CODEC_RATE_HZ


@pytest.mark.parametrize("period_ms", [2, 4, 6, 10, 15, 20, 25, 30])
@pytest.mark.parametrize("lag", [0, LAG_SAMPLES, 10 * FRAME_SAMPLES, 11 * FRAME_SAMPLES])
def test_text_that_is_there_is_heard_without_a_stall_from_the_first_frame_on(
    period_ms: int, lag: int
) -> None:
    known, waits = frame_times([(0.0, 400)], lambda _: period_ms / 1000)
    line, _ = play(known, waits, lag, LATENCY_S)
    assert line.stalled_s == 0.0
    assert line.samples == 400 * FRAME_SAMPLES
    earliest = lag // FRAME_SAMPLES
    gained_s = ((earliest + 1) * FRAME_SAMPLES - lag) / CODEC_RATE_HZ
    if gained_s < (period_ms + SAFETY_MS) / 1000:
        earliest += 1  # the first sound could be over before the next frame
    assert line.first_s == pytest.approx(known[earliest] + LATENCY_S)


@pytest.mark.parametrize("period_ms", [2, 6, 10])
def test_pieces_double_to_a_second(period_ms: int) -> None:
    known, waits = frame_times([(0.0, 500)], lambda _: period_ms / 1000)
    line, _ = play(known, waits, LAG_SAMPLES, LATENCY_S)
    sizes = [piece.frames for piece in line.pieces]
    assert sizes[0] == LAG_SAMPLES // FRAME_SAMPLES + 1
    assert max(sizes) == MOST_FRAMES
    growing = sizes[1 : sizes.index(MOST_FRAMES)]
    assert growing == sorted(growing)
    assert len(growing) <= 2 * math.log2(MOST_FRAMES)
    assert len(sizes) <= 500 / MOST_FRAMES + 2 * math.log2(MOST_FRAMES)


def test_a_decoder_that_slows_down_sends_smaller_pieces() -> None:
    known, waits = frame_times([(0.0, 500)], lambda row: 0.004 if row < 100 else 0.039)
    line, _ = play(known, waits, LAG_SAMPLES, LATENCY_S)
    assert line.stalled_s == 0.0
    sizes = [piece.frames for piece in line.pieces]
    assert MOST_FRAMES in sizes
    # The lead of the fast stretch pays for one frame in forty: pieces fit what is left of it.
    assert min(sizes[3:-1]) < MOST_FRAMES


def test_the_first_frame_of_a_short_chunk_does_not_wait_for_the_next_chunk() -> None:
    known, waits = frame_times([(0.0, 11), (0.0, 40)], lambda _: 0.022)
    line, _ = play(known, waits, LAG_SAMPLES, LATENCY_S)
    assert line.first_s is not None
    assert known[10] < line.first_s < known[10] + 0.022 + SAFETY_MS / 1000 + 2 * STEP_S + LATENCY_S
    assert known[11] - known[10] > 0.1


@given(
    texts=st.lists(st.tuples(st.floats(0.0, 1.5), st.integers(8, 120)), min_size=1, max_size=6),
    period_ms=st.floats(2.0, 28.0),
    jitter=st.floats(0.0, 0.2),
    lag=st.sampled_from([0, 5000, LAG_SAMPLES, 11 * FRAME_SAMPLES]),
)
@settings(max_examples=60, deadline=None)
def test_text_in_bursts_is_over_as_soon_as_frames_sent_one_by_one(
    texts: list[tuple[float, int]], period_ms: float, jitter: float, lag: int
) -> None:
    at_s = 0.0
    arrivals: list[tuple[float, int]] = []
    for gap_s, frames in texts:
        arrivals.append((at_s, frames))
        at_s += gap_s
    known, waits = frame_times(
        arrivals, lambda row: period_ms / 1000 * (1 + jitter * math.sin(row * 12.9898))
    )
    line, emission = play(known, waits, lag, LATENCY_S)
    at_once = play_at_once(known, lag, LATENCY_S)
    assert line.samples == len(known) * FRAME_SAMPLES
    assert line.first_s is not None and at_once.first_s is not None
    begins_later_s = line.first_s - at_once.first_s
    # One frame, or as long as one would take, where one alone would be over before the next.
    longest_s = (period_ms * (1 + jitter) + SAFETY_MS) / 1000
    assert begins_later_s <= longest_s + 2 * STEP_S
    assert line.until_s <= at_once.until_s + max(0.0, begins_later_s) + 0.015
    assert line.pieces[-1].closes
    assert emission.lead_s(line.until_s) == pytest.approx(0.0, abs=1e-6)


def begin(emission: Emission, pieces: int) -> float:
    """So many of the largest pieces at once; how many seconds of sound they are."""
    for number in range(pieces):
        piece = emission.due(MOST_FRAMES + 1, 0.0, ends=False, waiting_for_text=False)
        assert piece == Piece(MOST_FRAMES)
        lost = 0 if number else LAG_SAMPLES
        emission.emitted(MOST_FRAMES * FRAME_SAMPLES - lost, 0.0)
    return (pieces * MOST_FRAMES * FRAME_SAMPLES - LAG_SAMPLES) / CODEC_RATE_HZ


def test_the_tail_waits_for_text_until_the_lead_is_low_then_the_stretch_is_closed() -> None:
    emission = Emission(LAG_SAMPLES)
    lead_s = begin(emission, pieces=3)
    assert emission.lead_s(0.0) == pytest.approx(lead_s)

    assert emission.due(5, 0.1, ends=False, waiting_for_text=True) is None
    again_s = emission.again_s(5, 0.1)
    assert again_s == pytest.approx(lead_s - 0.1 - LOW_LEAD_MS / 1000)
    assert again_s is not None
    at_s = 0.1 + again_s + 1e-6
    # What the codec can still sound without an end comes first, and buys time.
    assert emission.due(5, at_s, ends=False, waiting_for_text=True) == Piece(5)
    emission.emitted(5 * FRAME_SAMPLES, at_s)
    assert emission.due(0, at_s, ends=False, waiting_for_text=True) is None
    at_s += 5 * FRAME_S + 1e-6
    assert emission.due(0, at_s, ends=False, waiting_for_text=True) == Piece(0, closes=True)
    emission.emitted(LAG_SAMPLES, at_s)
    assert emission.again_s(0, at_s) is None
    assert emission.due(0, at_s + 5.0, ends=False, waiting_for_text=True) is None
    # The next stretch begins as a reply does.
    assert emission.due(10, at_s + 5.0, ends=False, waiting_for_text=False) is None
    assert emission.due(12, at_s + 5.1, ends=False, waiting_for_text=False) == Piece(12)


def test_text_that_comes_in_time_goes_on_in_the_same_stretch() -> None:
    emission = Emission(LAG_SAMPLES)
    begin(emission, pieces=2)
    assert emission.due(3, 0.05, ends=False, waiting_for_text=True) is None
    assert emission.due(3, 0.54, ends=False, waiting_for_text=False) == Piece(3)


def test_speech_shorter_than_the_codecs_lag_is_closed_at_once() -> None:
    emission = Emission(LAG_SAMPLES)
    assert emission.due(0, 0.0, ends=False, waiting_for_text=True) is None
    assert emission.due(8, 0.1, ends=False, waiting_for_text=False) is None
    assert emission.due(8, 0.1, ends=False, waiting_for_text=True) == Piece(8, closes=True)


def test_the_end_takes_everything_and_only_once() -> None:
    emission = Emission(LAG_SAMPLES)
    assert emission.due(60, 0.0, ends=True, waiting_for_text=False) == Piece(60, closes=True)
    assert emission.due(0, 0.1, ends=True, waiting_for_text=False) is None


def test_a_listener_who_ran_dry_begins_again_with_what_comes() -> None:
    emission = Emission(0)
    emission.emitted(2400, 1.0)
    assert emission.lead_s(1.05) == pytest.approx(0.05)
    assert emission.lead_s(3.0) == 0.0
    emission.emitted(4800, 3.0)
    assert emission.lead_s(3.0) == pytest.approx(0.2)
