"""Encoded speech: it lasts as long and sounds the same, whatever the format and the cut."""

from __future__ import annotations

import gc
import io
import wave
from collections.abc import Iterator

import av
import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.audio.encoding import SPEECH_FORMATS, SpeechEncoder
from realtime.audio.quantise import FloatSamples, to_float32, to_int16
from realtime.audio.wav import wav_header

FORMATS = sorted(SPEECH_FORMATS)
RATES_HZ = [8_000, 22_050, 24_000, 44_100]
LONGEST_FRAME = {"wav": 1, "pcm": 1, "flac": 1, "opus": 1, "mp3": 1152, "aac": 1024}
SHORTEST_LOSSY_S = 0.064  # three frames of aac


def noise(count: int, seed: int = 0) -> FloatSamples:
    """Noise that every codec keeps, neither shrill nor rumbling, whose parts are all unlike."""
    white = np.random.default_rng(seed).standard_normal(count + 200)
    narrow, wide = np.hanning(16), np.hanning(160)
    band = np.pad(narrow / narrow.sum(), 72) - wide / wide.sum()
    return (np.convolve(white, band, "valid")[:count] * 0.5).astype(np.float32)


def in_pieces(samples: FloatSamples, sizes: list[int]) -> Iterator[FloatSamples]:
    at, turn = 0, 0
    while at < len(samples):
        yield samples[at : at + sizes[turn % len(sizes)]]
        at, turn = at + sizes[turn % len(sizes)], turn + 1


def encode(
    format: str,
    samples: FloatSamples,
    rate_hz: int,
    *,
    sizes: list[int] | None = None,
    is_streamed: bool = True,
) -> bytes:
    encoder = SpeechEncoder(format, rate_hz, is_streamed=is_streamed)
    pieces = in_pieces(samples, sizes or [rate_hz // 7, 1, 100])
    return b"".join([*(encoder.encode(piece) for piece in pieces), encoder.finish()])


def decode(format: str, data: bytes) -> tuple[FloatSamples, int]:
    if format == "pcm":
        return to_float32(np.frombuffer(data, "<i2")), 24_000
    with av.open(io.BytesIO(data), "r") as container:
        rate_hz = container.streams.audio[0].rate
        frames = [frame.to_ndarray().reshape(-1) for frame in container.decode(audio=0)]
    joined = np.concatenate(frames) if frames else np.zeros(0, dtype=np.float32)
    if joined.dtype == np.int16:
        return to_float32(joined.astype(np.int16)), rate_hz
    return joined.astype(np.float32), rate_hz


def likeness(heard: FloatSamples, heard_hz: int, samples: FloatSamples, rate_hz: int) -> float:
    """The correlation at no shift at all, past the first frame, that fades in."""
    start, count = heard_hz // 20, round(len(samples) * heard_hz / rate_hz)
    at = np.arange(start, min(count, len(heard)))
    expected = np.interp(at / heard_hz, np.arange(len(samples)) / rate_hz, samples)
    return float(np.corrcoef(heard[at], expected)[0, 1])


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_what_is_decoded_lasts_as_long_and_sounds_alike(
    format: str, is_streamed: bool, rate_hz: int
) -> None:
    samples = noise(rate_hz + 17)
    data = encode(format, samples, rate_hz, is_streamed=is_streamed)
    heard, heard_hz = decode(format, data)
    assert heard_hz == SpeechEncoder(format, rate_hz, is_streamed=is_streamed).rate_hz
    surplus = len(heard) - len(samples) * heard_hz / rate_hz
    assert -1 < surplus < LONGEST_FRAME[format]
    assert likeness(heard, heard_hz, samples, rate_hz) > 0.98


@pytest.mark.parametrize("count", [48_000, 48_340, 48_384, 48_385, 49_151, 49_152, 49_153])
@pytest.mark.parametrize("format", ["mp3", "aac"])
def test_no_length_costs_more_than_a_frame(format: str, count: int) -> None:
    heard, _ = decode(format, encode(format, noise(count), 48_000))
    assert 0 <= len(heard) - count < LONGEST_FRAME[format]


@pytest.mark.parametrize(
    ("format", "is_streamed"),
    [(format, is_streamed) for format in ("wav", "mp3", "opus") for is_streamed in (True, False)]
    + [("flac", False)],
)
def test_libsndfile_reads_the_same(format: str, is_streamed: bool) -> None:
    samples = noise(24_000)
    data = encode(format, samples, 24_000, is_streamed=is_streamed)
    read, heard_hz = soundfile.read(io.BytesIO(data), dtype="float32")
    heard = np.asarray(read, dtype=np.float32)
    assert 0 <= len(heard) - heard_hz < LONGEST_FRAME[format]
    assert likeness(heard, heard_hz, samples, 24_000) > 0.99


def test_libsndfile_reads_the_beginning_of_a_streamed_flac() -> None:
    """It cannot read one of unknown length to its end."""
    samples = noise(24_000)
    with soundfile.SoundFile(io.BytesIO(encode("flac", samples, 24_000))) as file:
        heard = file.read(23_000, dtype="int16")
    assert np.array_equal(heard, to_int16(samples)[:23_000])


@pytest.mark.parametrize("format", ["wav", "pcm", "flac"])
def test_what_loses_nothing_keeps_every_sample(format: str) -> None:
    samples = noise(24_000)
    heard, _ = decode(format, encode(format, samples, 24_000))
    assert np.array_equal(to_int16(heard), to_int16(samples))


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(FORMATS),
    st.sampled_from([22_050, 24_000, 48_000]),
    st.integers(0, 6_000),
    st.lists(st.integers(1, 2_500), min_size=1, max_size=6),
)
def test_any_cut_gives_the_same_file(
    format: str, rate_hz: int, count: int, sizes: list[int]
) -> None:
    samples = noise(count, seed=count)
    whole = encode(format, samples, rate_hz, sizes=[max(1, count)])
    pieces = encode(format, samples, rate_hz, sizes=sizes)
    if format == "opus":  # every Ogg stream has a number of its own
        assert np.array_equal(decode(format, whole)[0], decode(format, pieces)[0])
    else:
        assert whole == pieces


@pytest.mark.parametrize("format", FORMATS)
def test_the_first_sound_leaves_early(format: str) -> None:
    """0.15 s of speech are enough to hear some of it: more than a header has come."""
    encoder = SpeechEncoder(format, 24_000, is_streamed=True)
    pieces = in_pieces(noise(3_600), [480])
    early = b"".join(encoder.encode(piece) for piece in pieces)
    heard, heard_hz = decode(format, early)
    assert len(heard) / heard_hz > 0.04


@pytest.mark.parametrize("format", FORMATS)
def test_sound_leaves_all_the_time(format: str) -> None:
    """No second of speech waits for the next one."""
    encoder = SpeechEncoder(format, 24_000, is_streamed=True)
    sent = [encoder.encode(piece) for piece in in_pieces(noise(48_000), [2_400])]
    assert all(sent[2:])


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_next_to_nothing_is_still_a_file(
    format: str, is_streamed: bool, count: int, rate_hz: int
) -> None:
    data = encode(format, noise(count), rate_hz, is_streamed=is_streamed)
    heard, heard_hz = decode(format, data)
    is_lossy = format in ("mp3", "opus", "aac")
    least_s = 0.019 if is_lossy else (count - 1) / rate_hz
    assert least_s <= len(heard) / heard_hz <= SHORTEST_LOSSY_S


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize("format", FORMATS)
def test_wild_samples_are_clipped_and_never_wrap(format: str, rate_hz: int) -> None:
    loud = 10.0 * np.sign(np.sin(2 * np.pi * 200 * np.arange(rate_hz // 2) / rate_hz))
    samples = loud.astype(np.float32)
    samples[::97] = np.nan
    samples[5], samples[6] = np.inf, -np.inf
    heard, heard_hz = decode(format, encode(format, samples, rate_hz))
    assert np.isfinite(heard).all()
    assert np.abs(heard).max() < 2.0
    # A sample that wrapped around would be of the other sign, and spoil this.
    expected = np.nan_to_num(np.clip(samples, -1.0, 1.0))
    assert likeness(heard, heard_hz, expected, rate_hz) > 0.9
    assert np.median(np.abs(heard[heard_hz // 20 : heard_hz // 3])) > 0.8


def test_not_a_number_is_silence() -> None:
    data = encode("pcm", np.array([0.5, np.nan, np.inf, -np.inf], dtype=np.float32), 24_000)
    assert np.frombuffer(data, "<i2").tolist() == [16_384, 0, 32_767, -32_768]


def test_the_callers_samples_stay_as_they_are() -> None:
    samples = np.array([3.0, np.nan], dtype=np.float32)
    encode("wav", samples, 24_000)
    assert samples[0] == 3.0 and np.isnan(samples[1])


def test_a_streamed_wav_says_that_its_length_is_unknown() -> None:
    data = encode("wav", noise(1_000), 24_000)
    assert data[:44] == wav_header(24_000, None)
    assert data[4:8] == data[40:44] == b"\xff\xff\xff\xff"
    with wave.open(io.BytesIO(data)) as file:
        assert len(file.readframes(1_000_000)) == 2_000


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_wav_of_announced_length_leaves_at_once(is_streamed: bool) -> None:
    samples = noise(1_000)
    encoder = SpeechEncoder("wav", 24_000, is_streamed=is_streamed, total_samples=1_000)
    first = encoder.encode(samples[:300])
    data = first + encoder.encode(samples[300:]) + encoder.finish()
    assert len(first) == 44 + 600
    assert data == encode("wav", samples, 24_000, is_streamed=False)
    with wave.open(io.BytesIO(data)) as file:
        assert file.getnframes() == 1_000


def test_a_wav_beyond_four_gigabytes_has_no_wrong_length() -> None:
    assert wav_header(48_000, 2**31) == wav_header(48_000, None)


def test_another_length_than_announced_is_refused() -> None:
    encoder = SpeechEncoder("wav", 24_000, is_streamed=True, total_samples=10)
    encoder.encode(noise(9))
    with pytest.raises(ValueError, match="10 samples were announced, 9 came"):
        encoder.finish()


@pytest.mark.parametrize(("format", "rate_hz"), [("ogg", 24_000), ("", 24_000), ("wav", 0)])
def test_what_cannot_be_is_refused(format: str, rate_hz: int) -> None:
    with pytest.raises(ValueError, match="no speech format|rate of 0 Hz"):
        SpeechEncoder(format, rate_hz, is_streamed=True)


@pytest.mark.parametrize("format", FORMATS)
def test_an_encoder_may_be_dropped_half_way(format: str) -> None:
    for is_streamed in (True, False):
        encoder = SpeechEncoder(format, 24_000, is_streamed=is_streamed)
        encoder.encode(noise(5_000))
        del encoder
        gc.collect()  # pytest turns what goes wrong in there into an error
