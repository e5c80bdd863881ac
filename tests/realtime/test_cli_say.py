"""`parley say`: what it asks a server for, where the sound goes, and how it fails."""

from __future__ import annotations

import io
import json
import sys
import threading
import types
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from realtime.audio.wav import wav_header
from realtime.cli import main
from realtime.commands import progress
from tests.realtime.stub_server import Stub, stub_server

RATE_HZ = 22_050
SAMPLES = bytes(range(256)) * 40
# As it is sent while it is spoken: its header knows no length. Cut where no sample ends.
STREAMED_WAV = (wav_header(RATE_HZ, None) + SAMPLES[:11], SAMPLES[11:])


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PARLEY_KEY", raising=False)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with stub_server(Stub(content_type="audio/wav", chunks=STREAMED_WAV)) as stub:
        yield stub


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["say", *arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out.strip(), captured.err.strip()


def test_a_file_is_written_whole_with_its_length(
    stub: Stub, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out.wav"
    code, said, error = run(
        capsys, "Hello.", "-o", str(out), "--voice", "joe", "--speed", "1.5", "--url", stub.url
    )
    assert (code, error) == (0, "")
    assert said == f"speech written to {out} (10 kB)"
    assert json.loads(stub.body) == {
        "input": "Hello.",
        "voice": "joe",
        "speed": 1.5,
        "response_format": "wav",
        "stream": True,
    }
    assert stub.asked[0][0] == "/v1/audio/speech"
    assert "authorization" not in stub.headers
    with wave.open(str(out)) as file:
        assert (file.getframerate(), file.getnframes()) == (RATE_HZ, len(SAMPLES) // 2)
        assert file.readframes(len(SAMPLES)) == SAMPLES
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(("is_streamed", "seen"), [(True, True), (False, False)])
def test_a_file_is_there_early_only_where_it_is_streamed(
    stub: Stub,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    is_streamed: bool,
    seen: bool,
) -> None:
    out = tmp_path / "out.mp3"
    was_there: list[bool] = []

    def look(number: int) -> None:
        if number == 1:
            for _ in range(200 if is_streamed else 1):
                if out.exists():
                    break
                threading.Event().wait(0.01)
            was_there.append(out.exists())

    stub.before_chunk = look
    arguments = ["Hello.", "-o", str(out), "--url", f"{stub.url}/v1/"]
    assert run(capsys, *arguments, *(["--stream"] if is_streamed else []))[0] == 0
    assert was_there == [seen]
    assert out.read_bytes() == b"".join(STREAMED_WAV)


def test_a_text_comes_from_standard_input_and_the_key_from_the_environment(
    stub: Stub,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARLEY_KEY", "a-key-of-sixteen-characters\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("From a pipe.\n"))
    assert run(capsys, "-", "-o", str(tmp_path / "out.wav"), "--url", stub.url)[0] == 0
    assert json.loads(stub.body)["input"] == "From a pipe.\n"
    assert stub.headers["authorization"] == "Bearer a-key-of-sixteen-characters"


class SoundCard(types.ModuleType):
    """Stands in for `sounddevice`."""

    class PortAudioError(Exception):
        pass

    def __init__(self, is_there: bool = True) -> None:
        super().__init__("sounddevice")
        self.played: list[bytes] = []
        self.is_there = is_there

    def RawOutputStream(self, **options: Any) -> SoundCard:  # as the package calls it
        if not self.is_there:
            raise self.PortAudioError("no default output device")
        assert options == {"samplerate": 24_000, "channels": 1, "dtype": "int16"}
        return self

    def __enter__(self) -> SoundCard:
        return self

    def __exit__(self, *_ended: object) -> None:
        self.played.append(b"end")

    def write(self, data: bytes) -> None:
        self.played.append(data)


@pytest.mark.parametrize("is_streamed", [True, False])
def test_without_a_file_it_is_played_in_whole_samples(
    stub: Stub,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_streamed: bool,
) -> None:
    card = SoundCard()
    monkeypatch.setitem(sys.modules, "sounddevice", card)
    stub.chunks = (SAMPLES[:11], SAMPLES[11:])
    assert run(capsys, "Hello.", "--url", stub.url, *(["--stream"] * is_streamed))[0] == 0
    assert json.loads(stub.body)["response_format"] == "pcm"
    assert b"".join(card.played) == SAMPLES + b"end"
    assert all(len(data) % 2 == 0 for data in card.played[:-1])
    assert is_streamed or len(card.played) == 2


def test_without_a_loudspeaker_it_says_what_to_do_before_it_asks(
    stub: Stub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", SoundCard(is_there=False))
    code, _, error = run(capsys, "Hello.", "--url", stub.url)
    assert code == 1
    assert error.startswith("parley: no loudspeaker can be opened (no default output device)")
    assert error.endswith("-o FILE")
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    assert "sounddevice" in run(capsys, "Hello.", "--url", stub.url)[2]
    assert stub.asked == []


def test_what_is_wrong_is_said_before_anything_is_asked(
    stub: Stub, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out.txt"
    code, _, error = run(capsys, "Hello.", "-o", str(out), "--url", stub.url)
    assert code == 2
    assert error.startswith(f"parley: -o {out}: its name must end in .wav or .mp3 or")
    missing = tmp_path / "none" / "out.wav"
    code, _, error = run(capsys, "Hello.", "-o", str(missing), "--url", stub.url)
    assert (code, error) == (
        2,
        f"parley: -o {missing}: there is no folder {missing.parent}: make it first",
    )
    out = tmp_path / "out.wav"
    assert run(capsys, " \n", "-o", str(out))[::2] == (2, "parley: there is no text to say")
    assert run(capsys, "a\udcff", "-o", str(out))[2].startswith("parley: the text is no UTF-8 text")
    for speed in ("9", "nan", "0.1"):
        code, _, error = run(capsys, "Hello.", "-o", str(out), "--speed", speed)
        assert (code, error) == (2, f"parley: --speed {speed}: it must be 0.25 to 4")
    code, _, error = run(capsys, "Hello.", "-o", str(out), "--key", "ключ")
    assert (code, error) == (
        2,
        "parley: a key has ASCII characters alone: see --key and $PARLEY_KEY",
    )
    for url, hint in (
        ("127.0.0.1:8151", "http://127.0.0.1:8151"),
        ("http://h:x", "http://127.0.0.1:8000"),
        (f"{stub.url}/v1/audio", stub.url),
    ):
        code, _, error = run(capsys, "Hello.", "-o", str(out), "--url", url)
        wanted = f"parley: {url} is no address of a server; write it as {hint}"
        assert (code, error) == (2, wanted)
    assert stub.asked == []
    assert not out.exists()


def test_no_server_is_told_with_how_to_start_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with stub_server(Stub()) as gone:
        url = gone.url
    code, _, error = run(capsys, "Hello.", "-o", str(tmp_path / "out.wav"), "--url", url)
    assert code == 1
    assert error.startswith(f"parley: no server answers at {url} (")
    assert error.endswith("start one with: make serve")


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (
            400,
            '{"error": {"message": "Unknown voice \'x\'."}}',
            "refused this (400): Unknown voice",
        ),
        (502, "<html>\n Bad\n gateway", "refused this (502): <html> Bad gateway"),
        (404, "", "refused this (404): Not Found"),
        (401, "{}", "wants a key; give it with --key or in $PARLEY_KEY"),
    ],
)
def test_a_refusal_is_told_in_the_words_of_the_server(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, status: int, body: str, told: str
) -> None:
    with stub_server(Stub(status, chunks=(body.encode(),))) as stub:
        code, _, error = run(capsys, "Hello.", "-o", str(tmp_path / "a.wav"), "--url", stub.url)
    assert code == 1
    assert error.startswith(f"parley: {stub.url} {told}")
    assert list(tmp_path.iterdir()) == []


def test_a_speech_that_breaks_off_leaves_no_file(
    stub: Stub, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stub.announced = len(SAMPLES) * 2
    code, _, error = run(capsys, "Hello.", "-o", str(tmp_path / "out.wav"), "--url", stub.url)
    assert code == 1
    assert error.startswith(f"parley: {stub.url} broke the connection off")
    assert list(tmp_path.iterdir()) == []


def test_on_a_terminal_a_bar_shows_how_far_it_is() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, has_drawn = Terminal(), threading.Event()
    write = terminal.write
    terminal.write = lambda text: (write(text), "7.0 s" in text and has_drawn.set())[0]  # type: ignore[method-assign]
    with progress.Progress("speaking", terminal) as shown:
        shown.show("7.0 s of speech", 0.5)
        assert has_drawn.wait(10)
    drawn = terminal.getvalue()
    assert "speaking [###############...............] 7.0 s of speech (0 s)" in drawn
    assert drawn.endswith(progress.ERASE_LINE)


def test_where_nobody_looks_nothing_is_drawn() -> None:
    stream = io.StringIO()
    with progress.Progress("speaking", stream) as shown:
        shown.show("7.0 s", 0.5)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("name", "is_streamed"), [("heard.flac", False), ("heard.mp3", True)])
def test_a_file_that_must_know_its_length_is_asked_for_whole(
    capsys: pytest.CaptureFixture[str], stub: Stub, tmp_path: Path, name: str, is_streamed: bool
) -> None:
    assert run(capsys, "Hello.", "-o", str(tmp_path / name), "--url", stub.url)[0] == 0
    assert json.loads(stub.body)["stream"] is is_streamed
