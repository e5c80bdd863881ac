"""Rates: the same tone comes out, every sample is accounted for, nothing waits for long."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.audio.quantise import FloatSamples
from realtime.audio.resample import HearingResampler
from realtime.audio.voice import VoiceChain

HEARING_HZ = 16_000


def tone(count: int, rate_hz: int, hz: float = 440.0) -> FloatSamples:
    return (0.5 * np.sin(2 * np.pi * hz * np.arange(count) / rate_hz)).astype(np.float32)


def cut(samples: FloatSamples, sizes: list[int]) -> list[FloatSamples]:
    """Pieces of the given sizes, over and over."""
    pieces, at, turn = list[FloatSamples](), 0, 0
    while at < len(samples):
        size = sizes[turn % len(sizes)]
        pieces.append(samples[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


def hear(samples: FloatSamples, from_hz: int, sizes: list[int]) -> FloatSamples:
    resampler = HearingResampler(from_hz, HEARING_HZ)
    out = [resampler.process(piece) for piece in cut(samples, sizes)]
    return np.concatenate([*out, resampler.flush()])


@pytest.mark.parametrize("from_hz", [8_000, 16_000, 24_000, 44_100, 48_000])
def test_a_tone_stays_the_same_tone(from_hz: int) -> None:
    heard = hear(tone(from_hz, from_hz), from_hz, [from_hz // 50])
    assert len(heard) == HEARING_HZ
    expected = tone(HEARING_HZ, HEARING_HZ)
    assert np.abs(heard - expected)[200:-200].max() < 1e-3


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([8_000, 24_000, 48_000]),
    st.integers(0, 4000),
    st.lists(st.integers(1, 1500), min_size=1, max_size=6),
)
def test_any_cut_gives_the_same_samples(from_hz: int, count: int, sizes: list[int]) -> None:
    samples = tone(count, from_hz, 300)
    whole = hear(samples, from_hz, [max(1, count)])
    pieces = hear(samples, from_hz, sizes)
    assert len(whole) == len(pieces) == -(-count * HEARING_HZ // from_hz)
    assert np.allclose(whole, pieces, atol=1e-5)


@pytest.mark.parametrize(("from_hz", "longest_ms"), [(24_000, 3), (8_000, 6), (48_000, 3)])
def test_hardly_anything_is_held_back(from_hz: int, longest_ms: float) -> None:
    resampler = HearingResampler(from_hz, HEARING_HZ)
    given_ms = heard_ms = 0.0
    for piece in cut(tone(from_hz, from_hz), [from_hz // 100]):
        given_ms += len(piece) * 1000 / from_hz
        heard_ms += len(resampler.process(piece)) * 1000 / HEARING_HZ
        assert given_ms - heard_ms <= longest_ms


def test_what_the_narrow_band_cannot_hold_is_gone() -> None:
    heard = hear(tone(24_000, 24_000, 9_000), 24_000, [480])
    assert np.abs(heard[200:-200]).max() < 0.5 * 10 ** (-60 / 20)


def test_after_a_flush_the_stream_begins_anew() -> None:
    resampler = HearingResampler(24_000, HEARING_HZ)
    clip = tone(2400, 24_000)
    first = np.concatenate([resampler.process(clip), resampler.flush()])
    second = np.concatenate([resampler.process(clip), resampler.flush()])
    assert np.array_equal(first, second)


def test_streams_side_by_side_are_as_streams_alone() -> None:
    clips = [tone(9600, 24_000, 200 + 100 * n) for n in range(4)]
    alone = [hear(clip, 24_000, [480]) for clip in clips]
    resamplers = [HearingResampler(24_000, HEARING_HZ) for _ in clips]
    together: list[list[FloatSamples]] = [[] for _ in clips]
    for at in range(0, 9600, 480):
        for n, clip in enumerate(clips):
            together[n].append(resamplers[n].process(clip[at : at + 480]))
    for n, resampler in enumerate(resamplers):
        together[n].append(resampler.flush())
        assert np.array_equal(np.concatenate(together[n]), alone[n])


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(
        st.sampled_from([16_000, 22_050, 24_000, 44_100]),
        st.sampled_from([8_000, 12_000, 16_000, 24_000, 48_000]),
    ),
    st.integers(1, 6000),
    st.lists(st.integers(1, 2000), min_size=1, max_size=5),
)
def test_a_voice_loses_no_sample(rates: tuple[int, int], count: int, sizes: list[int]) -> None:
    from_hz, to_hz = rates
    chain = VoiceChain(to_hz, ceiling=0.98)
    out = [chain.process(piece, from_hz) for piece in cut(tone(count, from_hz), sizes)]
    rest = chain.flush()
    assert rest is not None
    total = sum(map(len, out)) + len(rest)
    assert abs(total - count * to_hz / from_hz) <= 0.5


def test_a_voice_may_not_change_its_rate() -> None:
    chain = VoiceChain(24_000, ceiling=0.98)
    chain.process(tone(100, 22_050), 22_050)
    with pytest.raises(ValueError, match="22050 to 16000"):
        chain.process(tone(100, 16_000), 16_000)
    assert VoiceChain(24_000, 0.98).flush() is None
