"""Tempo: the length is exact, the pitch stays, and the sound is where it is said to be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.audio.quantise import FloatSamples
from realtime.audio.tempo import Tempo

RATES_HZ = [8_000, 22_050, 24_000, 48_000]
SPEEDS = [0.25, 0.4, 0.5, 0.9, 1.1, 1.5, 2.0, 2.5, 4.0]


def tone(count: int, rate_hz: int, hz: float = 220.0) -> FloatSamples:
    return (0.5 * np.sin(2 * np.pi * hz * np.arange(count) / rate_hz)).astype(np.float32)


def stretch(samples: FloatSamples, rate_hz: int, speed: float, sizes: list[int]) -> FloatSamples:
    tempo = Tempo(rate_hz, speed)
    out, at, turn = list[FloatSamples](), 0, 0
    while at < len(samples):
        size = sizes[turn % len(sizes)]
        out.append(tempo.process(samples[at : at + size]))
        at, turn = at + size, turn + 1
    return np.concatenate([*out, tempo.finish()])


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize("speed", SPEEDS)
def test_a_tone_gets_longer_or_shorter_and_keeps_its_pitch(speed: float, rate_hz: int) -> None:
    samples = tone(2 * rate_hz + 17, rate_hz)
    out = stretch(samples, rate_hz, speed, [rate_hz // 7, 1, 100])
    assert out.dtype == np.float32
    assert len(out) == round(len(samples) / speed)
    spectrum = np.abs(np.fft.rfft(out * np.hanning(len(out))))
    assert abs(np.argmax(spectrum) * rate_hz / len(out) - 220) < 2.5
    assert 0.4 < np.abs(out[-len(out) // 10 :]).max() < 0.6  # up to its end


@pytest.mark.parametrize("rate_hz", RATES_HZ[1:])
@pytest.mark.parametrize("speed", SPEEDS)
def test_a_sound_is_heard_when_it_is_said_to_be(speed: float, rate_hz: int) -> None:
    samples = np.zeros(4 * rate_hz, dtype=np.float32)
    length = rate_hz // 5
    marks_s = (0.5, 1.7, 3.1)
    for mark_s in marks_s:
        start = int(mark_s * rate_hz) - length // 2
        samples[start : start + length] = tone(length, rate_hz) * np.hanning(length)
    energy = stretch(samples, rate_hz, speed, [rate_hz // 50]).astype(np.float64) ** 2
    for mark_s in marks_s:
        expected_s = Tempo(rate_hz, speed).to_output_s(mark_s)
        start = int((expected_s - 0.4 / speed) * rate_hz)
        part = energy[start : int((expected_s + 0.4 / speed) * rate_hz)]
        centre_s = (start + np.dot(np.arange(len(part)), part) / part.sum()) / rate_hz
        assert centre_s == pytest.approx(expected_s, abs=0.03)


def test_at_its_own_speed_speech_passes_untouched() -> None:
    tempo, samples = Tempo(24_000, 1.0), tone(1_000, 24_000)
    assert tempo.process(samples) is samples
    assert len(tempo.finish()) == 0
    assert tempo.to_output_s(3.0) == 3.0


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([22_050, 24_000]),
    st.floats(0.25, 4.0),
    st.integers(0, 12_000),
    st.lists(st.integers(1, 3_000), min_size=1, max_size=6),
)
def test_any_cut_gives_the_same_samples(
    rate_hz: int, speed: float, count: int, sizes: list[int]
) -> None:
    samples = tone(count, rate_hz)  # it repeats itself: the filter has many places to choose from
    whole = stretch(samples, rate_hz, speed, [max(1, count)])
    assert len(whole) == round(count / speed)
    assert np.array_equal(whole, stretch(samples, rate_hz, speed, sizes))


@pytest.mark.parametrize(("speed", "latest_s"), [(0.25, 0.12), (0.9, 0.1), (2.0, 0.1), (4.0, 0.3)])
def test_the_first_sound_comes_early(speed: float, latest_s: float) -> None:
    tempo = Tempo(24_000, speed)
    assert len(tempo.process(tone(round(latest_s * 24_000), 24_000))) > 0


def test_a_sample_that_is_no_number_spoils_only_its_surroundings() -> None:
    samples = tone(48_000, 24_000)
    samples[100] = np.nan
    out = stretch(samples, 24_000, 1.5, [1_000])
    assert len(out) == 32_000
    assert np.isfinite(out[8_000:]).all()


@pytest.mark.parametrize(
    ("rate_hz", "speed"), [(24_000, 0.2), (24_000, 9.0), (24_000, float("nan")), (0, 1.5)]
)
def test_what_cannot_be_is_refused(rate_hz: int, speed: float) -> None:
    with pytest.raises(ValueError, match=r"speed is|rate of 0 Hz"):
        Tempo(rate_hz, speed)
