"""Which uploads are recordings of a voice, and what is kept of them."""

from __future__ import annotations

import io

import av
import numpy as np
import pytest
import soundfile

from pipelines.higgs.cloning.recording import ReferenceRefused
from pipelines.higgs.cloning.recording import read_recording as read_reference
from pipelines.higgs.config import CODEC_RATE_HZ
from realtime.voices.names import VoiceRefused
from realtime.voices.recording import KEPT_RATE_HZ, LARGEST_BYTES, read_recording
from tests.realtime.audio.sound_files import KINDS, encoded, hum
from tests.realtime.voices.recordings import recording, sound_file, tone


def kept(data: bytes) -> np.ndarray:
    samples, rate_hz = soundfile.read(io.BytesIO(read_recording(data).wav), dtype="float32")
    assert rate_hz == KEPT_RATE_HZ
    return samples


def test_a_recording_is_kept_as_it_sounds() -> None:
    samples = tone(2.0)
    made = read_recording(sound_file(samples, subtype="FLOAT"))
    assert made.duration_ms == 2000
    assert np.abs(kept(sound_file(samples, subtype="FLOAT")) - samples).max() < 1e-4


@pytest.mark.parametrize(
    ("format", "rate_hz"), [("FLAC", 48_000), ("OGG", 16_000), ("MP3", 44_100)]
)
def test_every_usual_format_and_rate_is_read(format: str, rate_hz: int) -> None:
    made = read_recording(sound_file(tone(2.0, rate_hz), rate_hz, format))
    assert abs(made.duration_ms - 2000) < 60  # a codec's frame and its delay


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_transcribed_is_read(kind: str) -> None:
    """Likewise where it comes with a request for speech."""
    data = encoded(hum(2.0), kind)
    assert abs(read_recording(data).duration_ms - 2000) < 80
    assert abs(len(read_reference(data, "data")) / CODEC_RATE_HZ - 2) < 0.08


def test_a_rate_that_changes_is_told_of_references_too() -> None:
    with pytest.raises(ReferenceRefused, match="its rate changes"):
        read_reference(changing(), "data")


def test_the_channel_that_sounds_is_kept() -> None:
    stereo = np.stack([np.zeros_like(tone(1.5)), tone(1.5)], axis=1)
    assert np.abs(kept(sound_file(stereo))).max() == pytest.approx(0.3, abs=0.01)


def test_what_floats_hold_beyond_full_scale_is_made_quieter_and_not_clipped() -> None:
    loud = kept(sound_file(tone(1.5, level=2.0), subtype="FLOAT"))
    assert np.abs(loud - tone(1.5, level=1.0)).max() < 2e-3


def huge_flac() -> bytes:
    """Ten minutes in a few kilobytes."""
    return sound_file(np.zeros(600 * 8000, np.float32), 8000, "FLAC")


def changing() -> bytes:
    """A stream whose rate is another one after two seconds."""
    file = io.BytesIO()
    with av.open(file, "w", format="adts") as container:
        stream = container.add_stream("aac", rate=16_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(tone(2.0, 16_000)[None], format="fltp", layout="mono")
        frame.sample_rate = 16_000
        container.mux([*stream.encode(frame), *stream.encode(None)])
    return file.getvalue() + encoded(hum(2.0), "adts")


def with_nan() -> bytes:
    samples = tone(1.5)
    samples[100] = np.nan
    return sound_file(samples, subtype="FLOAT")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"This is a text, and no sound at all. " * 100, "no known format"),
        (b"\x89PNG\r\n\x1a\n" + bytes(5000), "no audio in it|no known format"),
        (recording()[:30], "it is truncated"),
        (recording(0.1), "0.10 s"),
        (recording(0.99), "0.99 s"),
        (sound_file(tone(30.1, 8000), 8000), "longer than 30 s"),
        (huge_flac(), "longer than 30 s"),
        (recording(2.0, level=0.0), "silent"),
        (recording(2.0, level=1e-4), "silent"),
        (with_nan(), "no numbers"),
        (changing(), "its rate or its channels change"),
        (sound_file(tone(1.5, level=100.0), subtype="FLOAT"), "up to 100"),
        (sound_file(tone(2.0, 4000), 4000), "rate is 4000 Hz"),
        (sound_file(np.zeros((24_000, 12), np.float32)), "12 channels"),
        (bytes(LARGEST_BYTES + 1), "larger than 24 MiB"),
        (recording(5.0)[:60_000], "it is truncated"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_recording_of_a_voice_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(VoiceRefused, match=why) as caught:
        read_recording(data)
    assert (caught.value.field, caught.value.code) == ("audio_sample", "voice_sample_refused")


@pytest.mark.parametrize(
    "script",
    [
        "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nvoice.wav\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile voice.wav\n",
    ],
)
def test_a_script_opens_no_other_file(
    script: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    with open("voice.wav", "wb") as file:
        file.write(recording())
    with pytest.raises(VoiceRefused, match="no known format"):
        read_recording(script.encode())
