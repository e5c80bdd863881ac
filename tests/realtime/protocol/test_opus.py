"""The codec itself: exact lengths, whatever comes in; ends that hold nothing back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.types import Samples
from realtime.protocol.formats import pcm_levels
from realtime.protocol.opus import (
    LARGEST_PACKET_BYTES,
    RATES_HZ,
    BadPacket,
    OpusDecoder,
    OpusEncoder,
)
from realtime.protocol.opus_library import load_opuslib
from realtime.session.settings import AudioFormat
from tests.realtime.wire_audio import (
    assert_is_the_tone,
    decode_deltas,
    level_db,
    packets,
    roughness,
    sine,
)

HEARING_HZ = 16_000


def heard(parts: list[bytes], rate_hz: int = HEARING_HZ) -> Samples:
    return decode_deltas(parts, AudioFormat("audio/opus", rate_hz))


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("frame_ms", [2.5, 5, 10, 20, 40, 60])
def test_a_packet_is_heard_exactly_as_long_as_it_is(frame_ms: float, channels: int) -> None:
    made = list(packets(sine(1200, 48_000), 48_000, frame_ms, channels, bitrate=128_000))
    decoder = OpusDecoder(HEARING_HZ)
    lengths = {len(decoder.decode(packet)) for packet in made}
    assert lengths == {int(frame_ms * 16)}
    assert_is_the_tone(heard(made), HEARING_HZ)


@pytest.mark.parametrize("frame_ms", [80, 100, 120])
def test_several_frames_in_one_packet(frame_ms: int) -> None:
    """Frames of 20 ms under one head: code 3, constant size (RFC 6716, 3.2.5)."""
    frames = [p for p in packets(sine(1200, 48_000), 48_000, 20) if len(p) > 1]
    count = frame_ms // 20
    size = max(map(len, frames))
    joined = list[bytes]()
    for at in range(0, len(frames) - count + 1, count):
        group = frames[at : at + count]
        head = bytes([group[0][0] | 3, 0x80 | count])  # variable sizes
        sizes = b"".join(_length(len(frame) - 1) for frame in group[:-1])
        joined.append(head + sizes + b"".join(frame[1:] for frame in group))
    assert size < LARGEST_PACKET_BYTES
    decoder = OpusDecoder(HEARING_HZ)
    assert {len(decoder.decode(packet)) for packet in joined} == {frame_ms * 16}
    assert_is_the_tone(heard(joined), HEARING_HZ)


def _length(size: int) -> bytes:
    return bytes([size]) if size < 252 else bytes([252 + size % 4, (size - 252) // 4])


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_packets_of_any_clock_are_heard_at_any_clock(rate_hz: int) -> None:
    made = list(packets(sine(1000, rate_hz), rate_hz))
    for other_hz in RATES_HZ:
        samples = heard(made, other_hz)
        assert len(samples) == other_hz
        assert_is_the_tone(samples, other_hz)


def test_what_the_hearing_rate_cannot_hold_is_gone() -> None:
    high = np.sin(2 * np.pi * 11_000 * np.arange(48_000) / 48_000).astype(np.float32) * 0.3
    made = list(packets(high, 48_000, bitrate=96_000))
    assert level_db(heard(made, 48_000)[2000:]) > -1.0
    assert level_db(heard(made)[1000:]) < -50.0


@pytest.mark.parametrize(
    "bad",
    [
        b"\xff" * 5,  # 63 frames of 20 ms
        b"\x03",  # says that a count follows
        b"\xfa\x05",  # a frame of five bytes that are not there
        b"OggS" + bytes(100),
        b"OpusHead" + bytes(11),
        bytes(LARGEST_PACKET_BYTES + 1),
    ],
)
def test_a_bad_packet_is_refused_and_the_stream_goes_on(bad: bytes) -> None:
    good = list(packets(sine(400, 48_000), 48_000))
    decoder, clean = OpusDecoder(HEARING_HZ), OpusDecoder(HEARING_HZ)
    for packet in good:
        with pytest.raises(BadPacket, match=f"these {len(bad)} bytes are none"):
            decoder.decode(bad)
        assert np.array_equal(decoder.decode(packet), clean.decode(packet))


def test_an_ogg_file_is_known_by_its_beginning() -> None:
    with pytest.raises(BadPacket, match="Ogg"):
        OpusDecoder(HEARING_HZ).decode(b"OggS" + bytes(100))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=8))
def test_random_bytes_are_a_packet_or_are_refused(given_packets: list[bytes]) -> None:
    decoder = OpusDecoder(HEARING_HZ)
    for packet in given_packets:
        try:
            samples = decoder.decode(packet)
        except BadPacket as error:
            assert "Opus packet" in str(error)
        else:
            assert samples.dtype == np.int16
            assert len(samples) <= HEARING_HZ * 120 // 1000
            assert len(samples) % (HEARING_HZ // 400) == 0  # of 2.5 ms
    good = next(packets(sine(20, 48_000), 48_000))
    assert len(decoder.decode(good)) == 320


def test_a_packet_that_was_left_out_takes_its_time() -> None:
    decoder = OpusDecoder(HEARING_HZ)
    assert len(decoder.decode(b"")) == 0  # of a stream that has not begun nothing is missing
    for packet in packets(sine(420, 48_000), 48_000, 60):
        assert len(decoder.decode(packet)) == 960
    filled = [decoder.decode(b"") for _ in range(50)]
    assert {len(piece) for piece in filled} == {960}
    assert np.abs(filled[0]).max() > 1000
    assert np.abs(filled[2:]).max() == 0  # a pause, not a sound that goes on for ever


def test_pauses_that_the_sender_does_not_code_take_their_time() -> None:
    """DTX: packets of a byte or two, in which there is no more than how long they last."""
    opuslib = load_opuslib()
    encoder = opuslib.Encoder(48_000, 1, "voip")
    opuslib.api.encoder.encoder_ctl(encoder.encoder_state, opuslib.api.ctl.set_dtx, 1)
    quiet = bytes(2 * 960)
    sent = [encoder.encode(quiet, 960) for _ in range(100)]
    assert min(map(len, sent)) <= 2
    assert len(heard(sent)) == 100 * 320
    assert len(heard([packet if len(packet) > 2 else b"" for packet in sent])) == 100 * 320


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize("last_ms", [5, 10, 17, 30, 33.5, 40])
def test_the_end_of_a_reply_is_heard_whole(rate_hz: int, last_ms: float) -> None:
    """Frames of 40 ms, and a rest that is filled up: nothing is left in the codec."""
    tone = pcm_levels(sine(400 + last_ms, rate_hz))
    whole = rate_hz * 40 // 1000
    encoder = OpusEncoder(rate_hz)
    sent = [encoder.encode(tone[at : at + whole]) for at in range(0, 10 * whole, whole)]
    sent.append(encoder.encode(tone[10 * whole :], is_end=True))
    samples = heard(sent, rate_hz)
    spoken = len(tone)
    assert spoken + encoder.lookahead_samples <= len(samples) <= spoken + rate_hz * 27 // 1000
    lag = encoder.lookahead_samples
    said = samples[lag : lag + spoken]
    assert level_db(said[-rate_hz // 100 :][: rate_hz // 200]) > -3.0
    assert np.abs(samples[lag + spoken + rate_hz // 200 :]).max(initial=0) < 0.06


def test_a_restart_makes_a_reply_that_can_be_decoded_by_itself() -> None:
    tone = pcm_levels(sine(40, 24_000))
    fresh, used = OpusEncoder(24_000), OpusEncoder(24_000)
    for _ in range(7):
        used.encode(pcm_levels(np.random.default_rng(1).random(960, np.float32) - 0.5))
    used.restart()
    assert used.encode(tone) == fresh.encode(tone)


def test_one_decoder_hears_two_replies_without_a_click() -> None:
    encoder = OpusEncoder(48_000)
    sent = list[bytes]()
    for _ in range(2):
        encoder.restart()
        tone = pcm_levels(sine(500, 48_000))
        sent += [encoder.encode(tone[at : at + 1920]) for at in range(0, 480 * 48, 1920)]
        sent.append(encoder.encode(tone[480 * 48 :], is_end=True))
    # The tone ends where it crosses zero, and begins there.
    assert roughness(heard(sent, 48_000), 48_000) < 1.3
