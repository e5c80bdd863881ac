"""References in every form come to the same codes, and what cannot be a voice is refused."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from pipelines.higgs.cloning.recording import ReferenceRefused, read_recording
from pipelines.higgs.cloning.reference import Reference, ReferenceEncoder, ReferenceRequest
from pipelines.higgs.codec.config import CodecConfig
from pipelines.higgs.rows import Codes
from pipelines.types import Samples


def tone(seconds: float, rate_hz: int = 24_000, hz: float = 440.0) -> Samples:
    times = np.arange(round(seconds * rate_hz)) / rate_hz
    return (0.3 * np.sin(2 * np.pi * hz * times)).astype(np.float32)


def sound_file(
    samples: Samples, rate_hz: int = 24_000, kind: str = "WAV", subtype: str = "FLOAT"
) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate_hz, format=kind, subtype=subtype)
    return file.getvalue()


def aac_file(samples: Samples, rate_hz: int) -> bytes:
    """What a phone records, which soundfile cannot read."""
    file = io.BytesIO()
    with av.open(file, mode="w", format="mp4") as container:
        stream = container.add_stream("aac", rate=rate_hz, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples[None], format="fltp", layout="mono")
        frame.sample_rate = rate_hz
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    return file.getvalue()


class Encoder:
    """Codes of a recording that tell one from another."""

    def __init__(self) -> None:
        self.heard: list[Samples] = []

    def encode(self, samples: Samples) -> Codes:
        self.heard.append(samples)
        return np.full((max(len(samples) // 960, 25), 8), len(samples) % 1000, np.int32)


@pytest.fixture
def encoder() -> Encoder:
    return Encoder()


@pytest.fixture
def refer(encoder: Encoder) -> Callable[..., Reference]:
    references = ReferenceEncoder(encoder.encode, CodecConfig(), model="a")
    return lambda **fields: references.refer(ReferenceRequest(**fields))


def test_all_forms_of_a_recording_are_one(
    refer: Callable[..., Reference], encoder: Encoder, tmp_path: Path
) -> None:
    data = sound_file(tone(2.0))
    path = tmp_path / "voice.wav"
    path.write_bytes(data)
    text = base64.b64encode(data).decode()
    found = [
        refer(data=data, transcript="  One two.  "),
        refer(path=path),
        refer(base64=text),
        refer(base64=f"data:audio/wav;base64,{text[:100]}\n{text[100:]}"),
    ]
    assert found[0].transcript == "One two."
    assert found[1].transcript is None
    assert all(np.array_equal(one.codes, found[0].codes) for one in found)
    assert len(encoder.heard) == 1  # the same sound, however it came
    assert np.allclose(encoder.heard[0], tone(2.0))


def test_a_file_that_changed_is_read_again(
    refer: Callable[..., Reference], encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "voice.wav"
    for seconds in (1.0, 1.5):
        path.write_bytes(sound_file(tone(seconds)))
        refer(path=path)
    assert [len(sound) for sound in encoder.heard] == [24_000, 36_000]


def test_codes_are_of_one_model() -> None:
    data = sound_file(tone(1.0))
    encoder = Encoder()
    for model in ("a", "b"):
        ReferenceEncoder(encoder.encode, CodecConfig(), model).refer(ReferenceRequest(data=data))
    assert len(encoder.heard) == 2


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000, 44_100, 48_000, 96_000])
@pytest.mark.parametrize("channels", [1, 2])
def test_rates_and_channels(rate_hz: int, channels: int) -> None:
    """440 Hz stay 440 Hz; the first channel alone is heard."""
    sound = np.stack([tone(1.0, rate_hz), tone(1.0, rate_hz, hz=3_000.0)][:channels], axis=1)
    heard = read_recording(sound_file(sound, rate_hz), "data")
    assert abs(len(heard) - 24_000) <= 1
    spectrum = np.abs(np.fft.rfft(heard[:24_000]))
    assert int(spectrum.argmax()) == 440
    assert spectrum[2_950:3_050].max() < spectrum[440] / 1000
    assert heard.dtype == np.float32


@pytest.mark.parametrize(("kind", "subtype"), [("WAV", "FLOAT"), ("MP3", "MPEG_LAYER_III")])
def test_a_channel_that_was_off_is_passed_over(kind: str, subtype: str) -> None:
    voice = tone(1.0, 48_000)
    sound = np.stack([np.zeros_like(voice), voice], axis=1)
    heard = read_recording(sound_file(sound, 48_000, kind, subtype), "data")
    assert 440 == int(np.abs(np.fft.rfft(heard[:24_000])).argmax())


def test_samples_beyond_any_sound_are_refused() -> None:
    data = sound_file(tone(1.0) * np.float32(1e30), 24_000, "WAV", "FLOAT")
    with pytest.raises(ReferenceRefused, match=r"samples of up to .*e\+2.*save it as 16-bit WAV"):
        read_recording(data, "data")


@pytest.mark.parametrize(
    ("kind", "subtype"),
    [("WAV", "PCM_16"), ("FLAC", "PCM_24"), ("OGG", "VORBIS"), ("MP3", "MPEG_LAYER_III")],
)
def test_formats(kind: str, subtype: str) -> None:
    heard = read_recording(sound_file(tone(1.0, 48_000), 48_000, kind, subtype), "data")
    assert 440 == int(np.abs(np.fft.rfft(heard[:24_000])).argmax())


def test_what_soundfile_cannot_read() -> None:
    heard = read_recording(aac_file(tone(2.0, 48_000), 48_000), "data")
    assert abs(len(heard) - 48_000) < 2_000  # the coder adds some at its ends
    assert 440 == int(np.abs(np.fft.rfft(heard[10_000:34_000])).argmax())


def with_one(value: float) -> Samples:
    samples = tone(1.0)
    samples[500] = value
    return samples


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a sound file"),
        (b"RIFFwhatever this is" * 50, "not a sound file"),
        (sound_file(tone(0.29)), "289|290 ms"),
        (sound_file(tone(30.1)), "longer than 30 s"),
        (sound_file(tone(31.0, 8_000), 8_000, "FLAC", "PCM_16"), "longer than 30 s"),
        (aac_file(tone(31.0), 24_000), "longer than 30 s"),
        (sound_file(0.001 * tone(1.0)), "silent"),
        (sound_file(with_one(float("nan"))), "no numbers"),
        (sound_file(with_one(float("inf"))), "no numbers"),
        (sound_file(tone(1.0, 4_000), 4_000), "4000 Hz"),
        (b"\0" * (24 * 2**20 + 1), r"24\.1 MiB, where 24 MiB are allowed; cut it to 5 to 15 s"),
    ],
)
def test_recordings_that_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(ReferenceRefused, match=words) as refused:
        read_recording(data, "data")
    assert refused.value.field == "data"


def test_codes_as_they_are(refer: Callable[..., Reference]) -> None:
    given = [[1, 2, 3, 4, 5, 6, 7, 1023]] * 3
    found = refer(codes=given, transcript="Hello.")
    assert found.codes.dtype == np.int32 and found.codes.tolist() == given
    assert found.transcript == "Hello."
    mine = np.zeros((4, 8), np.int32)
    kept = refer(codes=mine).codes
    mine[0, 0] = 5
    assert kept[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 1


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({}, "path", "give one of"),
        ({"transcript": "Hello."}, "transcript", "no recording"),
        ({"data": b"x", "base64": "eA=="}, "base64", "not data and base64"),
        ({"base64": "no base64!"}, "base64", "not base64"),
        ({"base64": "eHh4eA=="}, "base64", "not a sound file"),
        (
            {"path": Path("/nowhere/voice.wav")},
            "path",
            "no file /nowhere/voice.wav: correct the path",
        ),
        ({"codes": [[0] * 7]}, "codes", r"\[1, 7\], not \[frames, 8\]"),
        ({"codes": [[0] * 8, [0] * 7]}, "codes", "different lengths"),
        ({"codes": [[0.5] * 8]}, "codes", "whole numbers"),
        ({"codes": [[True] * 8]}, "codes", "whole numbers"),
        ({"codes": [[0] * 8, [0] * 7 + [1024]]}, "codes", r"\[1\]\[7\] is 1024, not 0 to 1023"),
        ({"codes": [[-1] * 8]}, "codes", r"\[0\]\[0\] is -1"),
        ({"codes": [[0] * 8] * 751}, "codes", "751 frames"),
        ({"codes": np.zeros((0, 8), np.int32)}, "codes", "0 frames"),
    ],
)
def test_requests_that_are_refused(
    refer: Callable[..., Reference], fields: dict[str, object], field: str, words: str
) -> None:
    with pytest.raises(ReferenceRefused, match=words) as refused:
        refer(**fields)
    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")


def test_what_is_wrong_with_a_file_is_told_with_its_whole_path(
    refer: Callable[..., Reference], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("voice.wav")
    for content, problem in (
        (sound_file(0.001 * tone(1.0)), "silent; record it again"),
        (sound_file(tone(0.1)), "100 ms of sound; a voice needs 300 ms or more"),
        (b"", r"not a sound file that can be read \(it is empty\); save it as WAV"),
        (sound_file(tone(600.0), subtype="PCM_16"), r"27\.5 MiB, where 24 MiB are allowed; cut it"),
    ):
        path.write_bytes(content)
        with pytest.raises(ReferenceRefused, match=f"^path: {tmp_path}/voice.wav: {problem}"):
            refer(path=path)
    with pytest.raises(ReferenceRefused, match=f"path: {tmp_path} is a folder: name the sound"):
        refer(path=tmp_path)


def test_a_refusal_is_not_kept(refer: Callable[..., Reference], tmp_path: Path) -> None:
    path = tmp_path / "voice.wav"
    path.write_bytes(b"not yet")
    with pytest.raises(ReferenceRefused):
        refer(path=path)
    path.write_bytes(sound_file(tone(1.0)))
    assert len(refer(path=path).codes) == 25
