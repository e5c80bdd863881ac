"""Long audio comes out in pieces that are short enough, in order, with nothing lost but silence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from pipelines.types import HEARING_RATE_HZ, Samples
from realtime.audio.segments import CUT_FROM_S, LONGEST_S, SILENCE_S, Piece, cut


def hum(seconds: float, level: float = 0.1) -> Samples:
    at = np.arange(int(seconds * HEARING_RATE_HZ)) / HEARING_RATE_HZ
    return (level * np.sin(2 * np.pi * 150 * at)).astype(np.float32)


def silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * HEARING_RATE_HZ), np.float32)


def by(audio: Samples, step_s: float = 1.0) -> Iterator[Samples]:
    step = int(step_s * HEARING_RATE_HZ)
    for first in range(0, len(audio), step):
        yield audio[first : first + step]


def times(pieces: list[Piece]) -> list[tuple[float, float]]:
    return [(round(piece.start_s, 2), round(piece.end_s, 2)) for piece in pieces]


def test_short_audio_is_one_piece_without_its_edges() -> None:
    audio = np.concatenate([silence(5.0), hum(2.0), silence(5.0)])
    [piece] = cut(by(audio))
    assert (piece.start_s, piece.end_s) == (pytest.approx(4.8), pytest.approx(7.2))
    first = int(piece.start_s * HEARING_RATE_HZ)
    assert np.array_equal(piece.samples, audio[first : first + len(piece.samples)])


@pytest.mark.parametrize("audio", [silence(0.0), silence(0.01), silence(100.0)])
def test_silence_has_no_pieces(audio: Samples) -> None:
    assert list(cut(by(audio))) == []


def test_long_audio_is_cut_in_its_pauses() -> None:
    talk = np.concatenate([hum(21.7), silence(0.4)])
    audio = np.tile(talk, 5)
    pieces = list(cut(by(audio)))
    assert len(pieces) == 5
    for piece in pieces[:-1]:
        assert CUT_FROM_S <= len(piece.samples) / HEARING_RATE_HZ <= LONGEST_S
        assert np.abs(piece.samples[-800:]).max() == 0  # the cut is in the pause
    assert [piece.start_s for piece in pieces] == sorted(piece.start_s for piece in pieces)


def test_audio_without_pauses_loses_nothing() -> None:
    audio = hum(200.0)
    pieces = list(cut(by(audio, 0.37)))
    assert np.array_equal(np.concatenate([piece.samples for piece in pieces]), audio)
    assert max(len(piece.samples) for piece in pieces) <= LONGEST_S * HEARING_RATE_HZ


def test_long_silence_is_left_out() -> None:
    audio = np.concatenate([hum(10.0), silence(600.0), hum(4.0), silence(SILENCE_S + 0.5), hum(1)])
    assert times(list(cut(by(audio)))) == [(0.0, 10.2), (609.8, 614.2), (617.3, 618.5)]


def test_a_short_silence_stays() -> None:
    audio = np.concatenate([hum(5.0), silence(SILENCE_S - 0.5), hum(5.0)])
    assert times(list(cut(by(audio)))) == [(0.0, 12.5)]


@pytest.mark.parametrize("step_s", [0.05, 1.0, 7.0, 1000.0])
def test_nothing_but_silence_is_lost(step_s: float) -> None:
    chance = np.random.default_rng(5)
    parts = [
        part
        for _ in range(30)
        for part in (hum(chance.uniform(0.5, 40.0)), silence(chance.uniform(0.1, 8.0)))
    ]
    audio = np.concatenate(parts)
    pieces = list(cut(by(audio, step_s)))
    covered = np.zeros(len(audio), bool)
    end_s = 0.0
    for piece in pieces:
        assert piece.start_s >= end_s - 1e-9
        assert len(piece.samples) <= LONGEST_S * HEARING_RATE_HZ
        first = round(piece.start_s * HEARING_RATE_HZ)
        assert np.array_equal(piece.samples, audio[first : first + len(piece.samples)])
        covered[first : first + len(piece.samples)] = True
        end_s = piece.end_s
    assert not np.abs(audio[~covered]).any()


def test_no_more_is_read_than_a_piece_needs() -> None:
    read = 0

    def endless() -> Iterator[Samples]:
        nonlocal read
        while True:
            read += 1
            yield hum(1.0)

    next(cut(endless()))
    assert read <= LONGEST_S + 1
