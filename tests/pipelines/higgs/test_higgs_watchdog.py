"""Runaway speech is seen, and speech that only pauses, drawls or repeats itself is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES, FRAMES_PER_S
from pipelines.higgs.reply.watchdog import (
    LOOP_FRAMES,
    MOST_PERIOD,
    MOST_ROWS,
    RepetitionWatch,
    Runaway,
    RunawayKind,
    SilenceWatch,
    row_limit,
)
from pipelines.higgs.rows import Codes
from pipelines.types import Samples

CODEBOOKS = 8


def speech_codes(frames: int, rng: np.random.Generator) -> Codes:
    """Sounds of 1 to 12 frames out of 40, with fine codes that differ each time, and pauses."""
    sounds = rng.integers(0, 1024, (40, CODEBOOKS), dtype=np.int32)
    found: list[Codes] = []
    spoken = 0  # frames since the last pause
    while sum(map(len, found)) < frames:
        if spoken > 10 and rng.random() < 0.2:
            found.append(np.repeat(sounds[:1], int(rng.integers(5, 100)), axis=0))
            spoken = 0
            continue
        length = int(rng.integers(1, 13))
        found.append(varied(np.repeat(sounds[rng.integers(40)][None], length, axis=0), rng))
        spoken += length
    return np.concatenate(found)[:frames]


def varied(codes: Codes, rng: np.random.Generator) -> Codes:
    """The same sounds again: the finer a code, the likelier it differs."""
    varies = rng.random(codes.shape) < np.linspace(0.1, 0.95, CODEBOOKS)
    return np.where(varies, rng.integers(0, 1024, codes.shape, dtype=np.int32), codes)


def fed(watch: RepetitionWatch, codes: Codes, size: int = 7) -> Runaway | None:
    for start in range(0, len(codes), size):
        found = watch.feed(codes[start : start + size])
        if found is not None:
            return found
    return None


def voiced(seconds: float, level: float = 0.1) -> Samples:
    """Syllables: noise whose level rises and falls four times a second, down to -40 dB."""
    count = round(seconds * CODEC_RATE_HZ)
    rng = np.random.default_rng(count)
    envelope = 0.01 + 0.99 * np.abs(np.sin(np.arange(count) / CODEC_RATE_HZ * np.pi * 4))
    return (rng.normal(0, level, count) * envelope).astype(np.float32)


def silent(seconds: float, level: float = 0.0003) -> Samples:
    count = round(seconds * CODEC_RATE_HZ)
    return np.random.default_rng(1).normal(0, level, count).astype(np.float32)


# ---- rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "calm_s"),
    [
        ("Yes.", 0.6),
        ("The train to the coast leaves at nine in the morning.", 3.0),
        ("Incomprehensibilities", 1.8),
        ("0171 4463 9921", 6.5),
        ("WWW", 1.6),
        ("$100 & 7% @ #3", 5.0),
        ("你好，世界。今天天气很好。", 3.5),
        ("안녕하세요 세계", 1.8),
        ("こんにちは", 1.2),
        ("สวัสดีชาวโลก", 1.8),
        ("مرحبا بالعالم", 1.6),
        ("One<|prosody:long_pause|> two", 2.7),
        ("<|prosody:speed_very_slow|>The train to the coast leaves at nine.", 4.2),
        ("<|style:singing|>The train to the coast leaves at nine.", 6.0),
        ("<|sfx:laughter|>Haha", 2.5),
    ],
)
def test_a_slow_speaker_has_the_rows_that_he_needs(text: str, calm_s: float) -> None:
    rows = row_limit(text)
    assert rows > 2 * calm_s * FRAMES_PER_S
    assert rows < (3.5 + 6 * calm_s) * FRAMES_PER_S  # or else it bounds nothing


def test_no_text_has_more_rows_than_the_model_can_speak() -> None:
    assert row_limit("word " * 5000) == MOST_ROWS
    assert 0 < row_limit("") < 100


@given(st.text(max_size=60), st.text(max_size=60))
def test_more_text_never_has_fewer_rows(text: str, more: str) -> None:
    assert row_limit(text) <= row_limit(f"{text} {more}") <= MOST_ROWS


# ---- loops -------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [1, 2, 7, 25, MOST_PERIOD])
def test_a_loop_is_seen_within_seconds_and_where_it_began(period: int) -> None:
    rng = np.random.default_rng(period)
    before = rng.integers(0, 1024, (100, CODEBOOKS), dtype=np.int32)
    loop = rng.integers(0, 1024, (period, CODEBOOKS), dtype=np.int32)
    watch = RepetitionWatch()
    needed = max(LOOP_FRAMES, 4 * period)
    assert fed(watch, before) is None
    # Frames are looked at by the second.
    repeated = np.tile(loop, (needed // period + 3 + FRAMES_PER_S // period, 1))
    seen_at = period + needed
    assert fed(watch, repeated[: seen_at - 1]) is None
    found = fed(watch, repeated[seen_at - 1 :])
    assert found == Runaway(RunawayKind.REPETITION, 100 + period)


def test_a_loop_whose_finest_codes_vary_is_seen_all_the_same() -> None:
    rng = np.random.default_rng(3)
    codes = np.tile(rng.integers(0, 1024, (20, CODEBOOKS), dtype=np.int32), (20, 1))
    codes[:, -1] = rng.integers(0, 1024, len(codes))
    codes[::9] = rng.integers(0, 1024, (len(codes[::9]), CODEBOOKS))  # now and then a frame
    assert fed(RepetitionWatch(), codes) is not None


@pytest.mark.parametrize("seed", range(12))
def test_speech_is_no_loop(seed: int) -> None:
    codes = speech_codes(2000, np.random.default_rng(seed))
    assert fed(RepetitionWatch(), codes) is None


def test_a_word_said_over_and_over_by_a_speaker_is_no_loop() -> None:
    rng = np.random.default_rng(5)
    word = rng.integers(0, 1024, (10, CODEBOOKS), dtype=np.int32)
    found: list[Codes] = []
    for _ in range(60):  # each time some codes differ, and the length by a frame or so
        again = np.repeat(word, rng.choice([1, 1, 1, 1, 2], len(word)), axis=0)
        found.append(varied(again, rng))
    assert fed(RepetitionWatch(), np.concatenate(found)) is None


def test_a_silence_trips_the_rule_of_silence_first() -> None:
    text = "One<|prosody:long_pause|> two"
    codes = np.zeros((LOOP_FRAMES, CODEBOOKS), np.int32)
    assert fed(RepetitionWatch(), codes) is None
    sound = SilenceWatch(text)
    assert sound.feed(voiced(1)) is None
    assert sound.feed(silent(LOOP_FRAMES / FRAMES_PER_S)) is not None


@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=20), period=st.integers(1, 50))
@settings(max_examples=30, deadline=None)
def test_how_frames_are_split_makes_no_difference(sizes: list[int], period: int) -> None:
    rng = np.random.default_rng(period)
    codes = np.tile(rng.integers(0, 1024, (period, CODEBOOKS), dtype=np.int32), (12, 1))
    codes = np.tile(codes, (1 + 300 // len(codes), 1))
    whole, split = RepetitionWatch(), RepetitionWatch()
    expected = whole.feed(codes)
    found: Runaway | None = None
    start = place = 0
    while found is None and start < len(codes):
        size = max(1, sizes[place % len(sizes)])
        found = split.feed(codes[start : start + size])
        start, place = start + size, place + 1
    assert found == expected and expected is not None


# ---- silence -----------------------------------------------------------------------------------


def test_silence_is_told_from_where_it_began() -> None:
    watch = SilenceWatch("Hello there.")
    assert watch.feed(voiced(2.0)) is None
    assert watch.feed(silent(2.4)) is None
    found = watch.feed(silent(1.0))
    assert found is not None and found.kind is RunawayKind.SILENCE
    assert abs(found.since_frame - 2 * FRAMES_PER_S) <= 1
    assert found.since_frame * FRAME_SAMPLES >= 2 * CODEC_RATE_HZ - 960


def test_leading_silence_has_a_tighter_bound() -> None:
    watch = SilenceWatch("Hello there.")
    assert watch.feed(silent(1.4)) is None
    assert watch.feed(silent(0.3)) == Runaway(RunawayKind.LEADING_SILENCE, 0)
    late = SilenceWatch("Hello there.")
    assert late.feed(np.concatenate([silent(1.4), voiced(1.0), silent(2.4)])) is None


@pytest.mark.parametrize(
    ("text", "pause_s"),
    [
        ("One. Two.", 1.5),
        ("One<|prosody:pause|> two", 2.2),
        ("One<|prosody:long_pause|> two", 3.0),
    ],
)
def test_pauses_that_the_text_explains_pass(text: str, pause_s: float) -> None:
    watch = SilenceWatch(text)
    for _ in range(10):
        assert watch.feed(np.concatenate([voiced(1.3), silent(pause_s)])) is None


def test_a_pause_at_the_start_explains_silence_at_the_start() -> None:
    watch = SilenceWatch("<|prosody:long_pause|>One.")
    assert watch.feed(np.concatenate([silent(2.5), voiced(1.0)])) is None


@pytest.mark.parametrize("level", [0.2, 0.02, 0.008])
def test_quiet_speech_is_no_silence(level: float) -> None:
    assert SilenceWatch("A long story.").feed(voiced(20.0, level)) is None


def test_the_room_noise_of_a_loud_voice_is_silence() -> None:
    watch = SilenceWatch("Hello.")
    assert watch.feed(voiced(1.0, 0.3)) is None
    assert watch.feed(silent(4.0, 0.003)) is not None


@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=8))
@settings(max_examples=15, deadline=None)
def test_how_samples_are_split_makes_no_difference(sizes: list[int]) -> None:
    samples = np.concatenate([voiced(0.5), silent(3.0)])
    whole, split = SilenceWatch().feed(samples), None
    watch = SilenceWatch()
    start = place = 0
    while split is None and start < len(samples):
        size = sizes[place % len(sizes)]
        split = watch.feed(samples[start : start + size])
        start, place = start + size, place + 1
    assert whole == split and whole is not None
