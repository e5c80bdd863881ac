"""Turns and items: which samples are kept, and how many at most."""

from __future__ import annotations

import numpy as np

from pipelines.types import HEARING_RATE_HZ, Samples
from realtime.audio.quantise import to_int16
from realtime.runtime.hearing import Hearing
from realtime.runtime.item_audio import ItemAudio


def count_up(start: int, count: int) -> Samples:
    """Every sample is its own position, modulo what 16 bits hold."""
    return ((np.arange(start, start + count) % 30_000) / 32768).astype(np.float32)


def hearing_at(position: int) -> Hearing:
    hearing = Hearing()
    for at in range(0, position, 512):
        hearing.write(count_up(at, min(512, position - at)))
    return hearing


def test_a_turn_is_kept_from_before_now_and_goes_on() -> None:
    hearing = hearing_at(5000)
    hearing.keep(1, 3000)
    hearing.write(count_up(5000, 2000))
    assert np.array_equal(hearing.read(1, 3000, 7000), count_up(3000, 4000))
    assert np.array_equal(hearing.read(1, 3500, 6500), count_up(3500, 3000))
    assert len(hearing.read(1, 0, 99_999)) == 4000


def test_a_turn_outlives_the_ring() -> None:
    hearing = hearing_at(1000)
    hearing.keep(1, 500)
    for at in range(1000, 60 * HEARING_RATE_HZ, 16_000):
        hearing.write(count_up(at, 16_000))
    assert np.array_equal(hearing.read(1, 500, 2000), count_up(500, 1500))


def test_filing_takes_exactly_what_the_turn_was() -> None:
    hearing = hearing_at(6000)
    hearing.keep(1, 1000)
    start, samples = hearing.take(1, 4000)
    assert start == 1000
    assert np.array_equal(samples, to_int16(count_up(1000, 3000)))
    assert hearing.kept_turns == 0
    assert np.array_equal(hearing.read(1, 1000, 4000), count_up(1000, 3000))  # from the ring
    assert len(hearing.take(7, 4000)[1]) == 0


def test_a_turn_cannot_begin_before_the_ring_does() -> None:
    hearing = hearing_at(40 * HEARING_RATE_HZ)
    hearing.keep(1, 0)
    start, samples = hearing.take(1, hearing.position)
    assert start == 10 * HEARING_RATE_HZ
    assert len(samples) == 30 * HEARING_RATE_HZ


def test_kept_audio_is_bounded_and_the_newest_stays() -> None:
    hearing = Hearing()
    hearing.keep(1, 0)
    second = count_up(0, HEARING_RATE_HZ)
    for _ in range(320):
        hearing.write(second)
    start, samples = hearing.take(1, hearing.position)
    assert len(samples) == 300 * HEARING_RATE_HZ
    assert start == 20 * HEARING_RATE_HZ


def ints(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.int16)


def test_item_audio_is_bounded_oldest_first() -> None:
    items = ItemAudio(limit_bytes=1000)
    items.append("a", ints(200), 16_000)
    items.append("b", ints(200), 16_000)
    items.append("b", ints(200), 16_000)
    assert items.get("a") is None
    assert items.size_bytes == 800
    items.append("b", ints(200), 16_000)  # alone too long: it stops growing
    recording = items.get("b")
    assert recording is not None and recording.samples == 400


def test_item_audio_is_trimmed_and_forgotten() -> None:
    items = ItemAudio()
    items.append("a", ints(16_000), 16_000)
    items.append("a", ints(16_000), 16_000)
    items.trim("a", 1500)
    recording = items.get("a")
    assert recording is not None and recording.duration_ms == 1500
    assert items.size_bytes == 48_000
    items.trim("a", 9000)
    assert items.size_bytes == 48_000
    items.append("handle", ints(100), 16_000)
    items.link("a", "handle")
    items.forget("a")
    assert len(items) == 0 and items.size_bytes == 0
    items.trim("a", 10)
    items.forget("a")
