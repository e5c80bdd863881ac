"""Audio bytes and samples: exact G.711, clipping without wraparound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.protocol import g711
from realtime.protocol.formats import (
    WIRE_FORMATS,
    Samples,
    bytes_per_sample,
    decode_audio,
    encode_audio,
)
from realtime.session.settings import AudioFormat

PCM = AudioFormat("audio/pcm", 24_000)
MU_LAW = AudioFormat("audio/pcmu", 8_000)
A_LAW = AudioFormat("audio/pcma", 8_000)

ALL_CODES = bytes(range(256))
NEGATIVE_ZERO = 0x7F  # mu-law has two codes for 0; the encoder knows one


def floats(*values: float) -> Samples:
    return np.array(values, dtype=np.float32)


def levels(audio: bytes, audio_format: AudioFormat) -> list[int]:
    return [round(sample * 32_768) for sample in decode_audio(audio, audio_format).tolist()]


def test_every_wire_format_has_a_width_and_its_rates_the_default_first() -> None:
    assert {name: (f.bytes_per_sample, *f.rates_hz) for name, f in WIRE_FORMATS.items()} == {
        "audio/pcm": (2, 24_000, 8_000, 16_000, 48_000),
        "audio/pcmu": (1, 8_000),
        "audio/pcma": (1, 8_000),
        "audio/opus": (None, 48_000, 24_000, 16_000, 12_000, 8_000),
    }
    assert bytes_per_sample(PCM) == 2


def test_packets_are_no_row_of_samples() -> None:
    opus = AudioFormat("audio/opus", 48_000)
    for convert in (lambda: bytes_per_sample(opus), lambda: decode_audio(b"\xf8\xff", opus)):
        with pytest.raises(ValueError, match="packets"):
            convert()
    with pytest.raises(ValueError, match="packets"):
        encode_audio(floats(0.0), opus)


# Rows of the decoder tables of G.711 (1a, 1b, 2a, 2b), scaled to 16 bits.
@pytest.mark.parametrize(
    ("audio_format", "code", "level"),
    [
        (MU_LAW, 0x80, 32_124),  # 8031
        (MU_LAW, 0x8F, 16_764),  # 4191
        (MU_LAW, 0x9F, 8_316),  # 2079
        (MU_LAW, 0xAF, 4_092),  # 1023
        (MU_LAW, 0xBF, 1_980),  # 495
        (MU_LAW, 0xCF, 924),  # 231
        (MU_LAW, 0xDF, 396),  # 99
        (MU_LAW, 0xEF, 132),  # 33
        (MU_LAW, 0xFE, 8),  # 2
        (MU_LAW, 0xFF, 0),
        (MU_LAW, 0x7F, 0),
        (MU_LAW, 0x00, -32_124),
        (A_LAW, 0xAA, 32_256),  # 4032
        (A_LAW, 0xA5, 16_896),  # 2112
        (A_LAW, 0xD5, 8),  # 1
        (A_LAW, 0x55, -8),
        (A_LAW, 0x2A, -32_256),
    ],
)
def test_g711_levels_are_those_of_the_recommendation(
    audio_format: AudioFormat, code: int, level: int
) -> None:
    assert levels(bytes([code]), audio_format) == [level]


def test_all_mu_law_codes_survive_the_round_trip() -> None:
    again = encode_audio(decode_audio(ALL_CODES, MU_LAW), MU_LAW)
    assert [code for code in range(256) if again[code] != code] == [NEGATIVE_ZERO]
    assert again[NEGATIVE_ZERO] == 0xFF


def test_all_a_law_codes_survive_the_round_trip() -> None:
    assert encode_audio(decode_audio(ALL_CODES, A_LAW), A_LAW) == ALL_CODES


@pytest.mark.parametrize(
    ("codes", "code_levels"),
    [
        (g711.mu_law_codes(), g711.mu_law_levels()),
        (g711.a_law_codes(), g711.a_law_levels()),
    ],
)
def test_every_level_gets_a_neighbouring_code(codes: g711.Codes, code_levels: g711.Levels) -> None:
    wanted = np.arange(-32_768, 32_768)
    coded = code_levels.astype(np.int32)[codes[wanted.astype(np.int16).view(np.uint16)]]
    distinct = np.sort(code_levels.astype(np.int32))
    above = distinct[np.clip(np.searchsorted(distinct, wanted), 0, 255)]
    below = distinct[np.clip(np.searchsorted(distinct, wanted, side="right") - 1, 0, 255)]
    assert ((coded == above) | (coded == below)).all()
    assert (np.diff(coded) >= 0).all()


# Where the segments of G.711 begin: the decision values x of tables 1a and 2a, at 16 bits.
@pytest.mark.parametrize(
    ("codes", "begins", "inverted"),
    [
        (g711.mu_law_codes(), [4 * x for x in (31, 95, 223, 479, 991, 2015, 4063)], 0xFF),
        (g711.a_law_codes(), [8 * x for x in (64, 128, 256, 512, 1024, 2048)], 0xD5),
    ],
)
def test_segments_begin_where_the_recommendation_says(
    codes: g711.Codes, begins: list[int], inverted: int
) -> None:
    for begin in begins:
        assert (codes[begin] ^ inverted) & 15 == 0
        assert (codes[begin - 1] ^ inverted) & 15 == 15
        assert (codes[begin] ^ inverted) >> 4 == ((codes[begin - 1] ^ inverted) >> 4) + 1


def test_pcm_is_signed_little_endian() -> None:
    assert levels(b"\x01\x00\xff\xff\xff\x7f\x00\x80", PCM) == [1, -1, 32_767, -32_768]
    assert encode_audio(floats(0.5, -0.5), PCM) == b"\x00\x40\x00\xc0"


def test_all_pcm_levels_survive_the_round_trip() -> None:
    audio = np.arange(-32_768, 32_768, dtype="<i2").tobytes()
    assert encode_audio(decode_audio(audio, PCM), PCM) == audio


@pytest.mark.parametrize("audio_format", [PCM, MU_LAW, A_LAW])
def test_what_is_too_loud_is_clipped_and_never_wraps(audio_format: AudioFormat) -> None:
    loud = floats(1.0, 1.5, 1e9, np.inf, -1.0, -1.5, -1e9, -np.inf)
    heard = decode_audio(encode_audio(loud, audio_format), audio_format)
    assert (heard[:4] > 0.97).all()
    assert (heard[4:] < -0.97).all()


@pytest.mark.parametrize("audio_format", [PCM, MU_LAW, A_LAW])
def test_nan_is_silence(audio_format: AudioFormat) -> None:
    heard = decode_audio(encode_audio(floats(np.nan), audio_format), audio_format)
    assert abs(heard[0]) <= 8 / 32_768


def test_half_a_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="size"):
        decode_audio(b"\x00\x00\x00", PCM)


@pytest.mark.parametrize("audio_format", [PCM, MU_LAW, A_LAW])
@given(values=st.lists(st.floats(-1, 1, width=32), max_size=200), cut=st.integers(0, 200))
def test_frames_stand_alone(audio_format: AudioFormat, values: list[float], cut: int) -> None:
    samples = floats(*values)
    whole = encode_audio(samples, audio_format)
    parts = encode_audio(samples[:cut], audio_format) + encode_audio(samples[cut:], audio_format)
    assert parts == whole
    assert len(whole) == len(values) * bytes_per_sample(audio_format)
    assert decode_audio(whole, audio_format).dtype == np.float32
