"""Any sound file is heard, in pieces; what is none, or not whole, is refused with the reason."""

from __future__ import annotations

import contextlib
import io
import wave
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipelines.types import HEARING_RATE_HZ, Samples
from realtime.audio.reading import PIECE_SAMPLES, SoundFile, UnreadableAudio
from tests.realtime.audio.sound_files import KINDS, encode_into, encoded, hum

ENCODER_MARGIN_S = 0.06  # silence that codecs put at the edges


def read(data: bytes, **bounds: float) -> Samples:
    pieces = list(SoundFile(io.BytesIO(data), **bounds))
    assert all(piece.dtype == np.float32 for piece in pieces)
    return np.concatenate(pieces)


def refusal(data: bytes, **bounds: float) -> str:
    with pytest.raises(UnreadableAudio) as refused:
        read(data, **bounds)
    return str(refused.value)


@pytest.mark.parametrize("kind", KINDS)
def test_every_container_is_read(kind: str) -> None:
    audio = read(encoded(hum(5.0), kind))
    assert len(audio) / HEARING_RATE_HZ == pytest.approx(5.0, abs=ENCODER_MARGIN_S)
    assert float(np.sqrt(np.mean(audio**2))) == pytest.approx(0.1 / np.sqrt(2), rel=0.1)


def test_a_title_of_any_encoding_hinders_nothing() -> None:
    data = encoded(hum(1.0), "matroska")
    assert data.count(b"Lavf") > 0
    assert len(read(data.replace(b"Lavf", b"\xff\xfe\xe9f"))) > 0


def test_a_head_that_makes_no_sense_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        b"\xff".decode()

    monkeypatch.setattr("av.open", fail)
    assert refusal(b"x") == "It is damaged: its head cannot be read."


def test_pieces_are_small() -> None:
    pieces = list(SoundFile(io.BytesIO(encoded(hum(60.0), "mp3"))))
    assert max(map(len, pieces)) < 2 * PIECE_SAMPLES


def test_stereo_becomes_mono() -> None:
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setparams((2, 2, 8000, 0, "NONE", ""))
        left = np.full(8000, 16000, "<i2")
        file.writeframes(np.stack([left, np.zeros_like(left)], axis=1).tobytes())
    audio = read(made.getvalue())
    assert len(audio) == pytest.approx(HEARING_RATE_HZ, abs=50)
    assert 0.2 < float(audio[4000:12000].mean()) < 0.4


def test_numbers_beyond_full_scale_are_cut() -> None:
    odd = np.array([np.nan, np.inf, -np.inf, 7.5, -7.5, 0.25], "<f4")
    made = io.BytesIO()
    soundfile.write(made, np.repeat(odd, 4000), 16_000, format="WAV", subtype="FLOAT")
    audio = read(made.getvalue())
    assert np.isfinite(audio).all()
    assert np.abs(audio).max() <= 1.0
    assert audio[-2000:].mean() == pytest.approx(0.25, abs=0.01)


def test_a_wav_of_unknown_length_is_whole() -> None:
    data = bytearray(encoded(hum(1.0)))
    at = data.find(b"data") + 4
    for size in (b"\xff" * 4, b"\0" * 4):
        data[4:8] = data[at : at + 4] = size
        assert len(read(bytes(data))) == HEARING_RATE_HZ


@pytest.mark.parametrize("share", [0.5, 0.8])
@pytest.mark.parametrize("kind", ["wav", "mp3", "mp4", "webm", "flac", "aiff"])
def test_what_is_truncated_is_refused(kind: str, share: float) -> None:
    whole = encoded(hum(10.0), kind)
    assert "truncated" in refusal(whole[: int(share * len(whole))])


def test_truncation_shows_though_the_index_is_in_front(tmp_path: Path) -> None:
    path = tmp_path / "whole.m4a"
    encode_into(str(path), hum(10.0), "mp4", {"movflags": "faststart"})
    whole = path.read_bytes()
    assert len(read(whole)) / HEARING_RATE_HZ == pytest.approx(10.0, abs=ENCODER_MARGIN_S)
    assert "10.0 s of audio" in refusal(whole[: len(whole) // 2])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"just some text\n" * 500,
        bytes(50_000),
        np.random.default_rng(1).bytes(50_000),
        b"1\n00:00:00,000 --> 00:00:01,000\nSubtitles have no sound.\n\n",
        b"RIFF\0\0\0\0WAVE",
    ],
)
def test_what_is_no_audio_is_refused(data: bytes) -> None:
    assert refusal(data)


def test_an_empty_recording_is_refused() -> None:
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
    assert "No audio" in refusal(made.getvalue())


def test_an_odd_rate_is_refused() -> None:
    data = bytearray(encoded(hum(1.0)))
    data[24:28] = (1).to_bytes(4, "little")
    assert "samples per second" in refusal(bytes(data))


@pytest.mark.parametrize("channels", [9, 65])
def test_more_channels_than_can_be_mixed_are_told(channels: int) -> None:
    made = io.BytesIO()
    sound = np.tile(hum(0.2)[:, None], (1, channels))
    soundfile.write(made, sound, HEARING_RATE_HZ, format="WAV")
    assert f"too many channels: {channels}" in refusal(made.getvalue())


def test_an_unknown_encoding_is_refused() -> None:
    data = bytearray(encoded(hum(1.0)))
    data[20:22] = (0x1234).to_bytes(2, "little")
    assert "encoding" in refusal(bytes(data))


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_heard_over_or_refused(kind: str) -> None:
    chance = np.random.default_rng(8)
    whole = encoded(hum(1.0), kind)
    for _ in range(40):
        data = bytearray(whole)
        reach = int(chance.choice([64, 400, len(data)]))
        for at in chance.integers(0, min(reach, len(data)), 10):
            data[at] = chance.integers(256)
        with contextlib.suppress(UnreadableAudio):
            read(bytes(data))


def test_what_is_too_long_is_refused() -> None:
    assert "longer than 2 s" in refusal(encoded(hum(3.0), "flac"), longest_s=2.0)
    assert "longer than 2 s" in refusal(encoded(hum(3.0), "ogg"), longest_s=2.0)


def test_files_that_a_playlist_names_are_not_opened(tmp_path: Path) -> None:
    target = tmp_path / "private.wav"
    target.write_bytes(encoded(hum(1.0)))
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{target}\n#EXT-X-ENDLIST\n"
    refusal(playlist.encode())
    session = "v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=audio 9 RTP/AVP 0\n"
    refusal(session.encode())
    refusal(f"ffconcat version 1.0\nfile {target}\n".encode())


def test_a_stopped_file_ends() -> None:
    file = SoundFile(io.BytesIO(encoded(hum(60.0), "mp3")))
    pieces = iter(file)
    next(pieces)
    file.stop()
    assert len(list(pieces)) <= 1
