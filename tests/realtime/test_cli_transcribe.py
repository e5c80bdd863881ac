"""`parley transcribe`: what it sends to a server, what it prints, and how it fails."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from realtime.cli import main
from tests.realtime.stub_server import Stub, stub_server

SOUND = bytes(range(256)) * 1000
EVENTS = "text/event-stream; charset=utf-8"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PARLEY_KEY", raising=False)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "speech.ogg"
    path.write_bytes(SOUND)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["transcribe", *arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err.strip()


def event(kind: str, **fields: Any) -> bytes:
    return f"data: {json.dumps({'type': kind, **fields})}\n\n".encode()


def fields_in(body: bytes) -> dict[str, bytes]:
    """The parts of a form, by name."""
    boundary = body[: body.index(b"\r\n")]
    parts: dict[str, bytes] = {}
    for part in body.split(boundary)[1:-1]:
        head, _, value = part.partition(b"\r\n\r\n")
        parts[head.partition(b'name="')[2].partition(b'"')[0].decode()] = value[:-2]
    return parts


def test_text_is_printed_as_it_is_heard(
    capsys: pytest.CaptureFixture[str], recording: Path
) -> None:
    said = [event("transcript.text.delta", delta=text) for text in ("Good", " day ", "– to you.")]
    whole = b"".join([*said, event("transcript.text.done", text="Good day – to you.")])
    # Cut in the middle of an event and of a character.
    chunks = (whole[:50], whole[50:153], whole[153:])
    with stub_server(Stub(content_type=EVENTS, chunks=chunks)) as stub:
        code, out, error = run(capsys, str(recording), "--language", "en", "--url", stub.url)
    assert (code, out, error) == (0, "Good day – to you.\n", "")
    assert stub.asked[0][0] == "/v1/audio/transcriptions"
    assert fields_in(stub.body) == {
        "model": b"whisper-1",
        "response_format": b"text",
        "stream": b"true",
        "language": b"en",
        "file": SOUND,
    }
    assert b'filename="speech.ogg"' in stub.body
    assert int(stub.headers["content-length"]) == len(stub.body)


def test_a_recording_may_come_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SOUND)))
    with stub_server(Stub(content_type="text/plain", chunks=(b"Good day.",))) as stub:
        assert run(capsys, "-", "--url", stub.url) == (0, "Good day.\n", "")
    assert fields_in(stub.body)["file"] == SOUND
    assert int(stub.headers["content-length"]) == len(stub.body)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    code, _, error = run(capsys, "-")
    assert (code, error) == (2, "parley: there is nothing on standard input")


@pytest.mark.parametrize("format", ["srt", "vtt", "json"])
def test_other_formats_are_printed_as_they_come(
    capsys: pytest.CaptureFixture[str], recording: Path, format: str
) -> None:
    with stub_server(Stub(content_type="text/plain", chunks=(b"1\n00:00 ", b"Hi\n"))) as stub:
        code, out, _ = run(capsys, str(recording), "--format", format, "--url", stub.url)
    assert (code, out) == (0, "1\n00:00 Hi\n")
    fields = fields_in(stub.body)
    assert fields["response_format"] == format.encode()
    assert fields.keys() == {"model", "response_format", "file"}


def test_a_server_that_does_not_stream_is_understood_too(
    capsys: pytest.CaptureFixture[str], recording: Path
) -> None:
    with stub_server(Stub(content_type="text/plain", chunks=(b"Good day.",))) as stub:
        assert run(capsys, str(recording), "--url", stub.url)[:2] == (0, "Good day.\n")


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        (event("error", error={"message": "The recogniser failed."}), "The recogniser failed."),
        (b"", "in the middle of the transcript"),
    ],
)
def test_a_transcript_that_breaks_off_has_failed(
    capsys: pytest.CaptureFixture[str], recording: Path, ending: bytes, told: str
) -> None:
    chunks = (event("transcript.text.delta", delta="Good"), ending)
    with stub_server(Stub(content_type=EVENTS, chunks=chunks)) as stub:
        code, out, error = run(capsys, str(recording), "--url", stub.url)
    assert (code, out.strip()) == (1, "Good")
    assert error.startswith("parley: the server broke off")
    assert error.endswith(told)


def test_a_file_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    missing = tmp_path / "none.wav"
    assert run(capsys, str(missing)) == (2, "", f"parley: {missing}: there is no such file")
    code, _, error = run(capsys, str(tmp_path))
    assert code == 2
    assert error.startswith(f"parley: {tmp_path} cannot be read")


def test_a_refusal_is_told_in_the_words_of_the_server(
    capsys: pytest.CaptureFixture[str], recording: Path
) -> None:
    body = json.dumps({"error": {"message": "Invalid 'file': it is no sound."}}).encode()
    with stub_server(Stub(400, "application/json", (body,))) as stub:
        code, out, error = run(capsys, str(recording), "--url", stub.url)
    assert (code, out) == (1, "")
    assert error == f"parley: {stub.url} refused this (400): Invalid 'file': it is no sound."
    with stub_server(Stub(401, "application/json", (b"{}",))) as stub:
        _, _, error = run(capsys, str(recording), "--url", stub.url, "--key", "a-wrong-one")
        assert stub.headers["authorization"] == "Bearer a-wrong-one"
    assert error.endswith("does not accept this key; give another with --key or in $PARLEY_KEY")


def test_names_of_any_characters_are_sent(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "gespräch \udcff.wav"
    path.write_bytes(SOUND)
    with stub_server(Stub(content_type="text/plain", chunks=(b"Hi",))) as stub:
        assert run(capsys, str(path), "--url", stub.url)[0] == 0
    assert fields_in(stub.body)["file"] == SOUND
    code, _, error = run(capsys, str(path), "--language", "русский")
    assert code == 2
    assert error.startswith("parley: --language: it is a code of two letters")


def test_a_wrong_format_is_used_wrongly(recording: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["transcribe", str(recording), "--format", "docx"])
    assert caught.value.code == 2
