"""Pauses are shortened and cut at, and no word is lost to either."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.stages.speech_pauses import (
    KEPT_S,
    PIECE_AT_LEAST_S,
    PIECE_S,
    quietest,
    shorten_pauses,
    split,
)
from pipelines.types import HEARING_RATE_HZ, Samples


def hum(seconds: float) -> Samples:
    at = np.arange(int(seconds * HEARING_RATE_HZ)) / HEARING_RATE_HZ
    return (0.1 * np.sin(2 * np.pi * 150 * at)).astype(np.float32)


def pause(seconds: float, level: float = 0.0005) -> Samples:
    noise = np.random.default_rng(3).standard_normal(int(seconds * HEARING_RATE_HZ))
    return (level * noise).astype(np.float32)


def seconds_of(audio: Samples) -> float:
    return len(audio) / HEARING_RATE_HZ


def test_a_long_pause_is_shortened_and_the_speech_is_whole() -> None:
    audio = np.concatenate([hum(2.0), pause(3.0), hum(1.0)])
    short = shorten_pauses(audio)
    assert seconds_of(short) == pytest.approx(3.0 + 2 * KEPT_S, abs=0.05)
    assert np.array_equal(short[:32_000], audio[:32_000])
    assert np.array_equal(short[-16_000:], audio[-16_000:])


@pytest.mark.parametrize(
    "audio",
    [
        np.concatenate([hum(2.0), pause(0.6), hum(1.0)]),
        np.concatenate([hum(2.0), pause(2.0, level=0.05), hum(1.0)]),
        hum(0.3),
        hum(0.0),
    ],
)
def test_short_pauses_and_noise_are_left_alone(audio: Samples) -> None:
    assert np.array_equal(shorten_pauses(audio), audio)


def test_silence_is_not_lengthened() -> None:
    assert seconds_of(shorten_pauses(pause(5.0, level=0.0))) == pytest.approx(2 * KEPT_S)


def test_long_audio_is_cut_in_the_pauses() -> None:
    gap = pause(0.5, level=0.0)
    audio = np.concatenate([hum(24.0), gap, hum(20.0), gap, hum(30.0)])
    pieces = split(audio)
    assert np.array_equal(np.concatenate(pieces), audio)
    seconds = [len(piece) / HEARING_RATE_HZ for piece in pieces]
    assert all(PIECE_AT_LEAST_S <= length <= PIECE_S for length in seconds[:-1])
    assert seconds[0] == pytest.approx(24.25, abs=0.2)
    assert seconds[1] == pytest.approx(20.5, abs=0.3)


def test_short_audio_is_one_piece() -> None:
    audio = hum(2.0)
    assert [len(piece) for piece in split(audio)] == [len(audio)]
    assert [len(piece) for piece in split(audio[:0])] == [0]


def test_the_quietest_place_is_found() -> None:
    audio = hum(4.0)
    audio[32_000:40_000] = 0.0
    assert quietest(audio, 0, len(audio)) == pytest.approx(36_000, abs=2500)
