"""`parley transcribe`: a sound file to a server, what is said in it to standard output."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import httpx

from realtime.commands.errors import OK, USAGE, CommandError
from realtime.commands.http_client import open_server
from realtime.commands.progress import Progress

PATH = "/v1/audio/transcriptions"
MODEL = "whisper-1"  # the field is obligatory; a server has one recogniser, whatever it is called
TEXT, JSON, SRT, VTT = "text", "json", "srt", "vtt"
FORMATS = (TEXT, SRT, VTT, JSON)
# For the next bytes: an hour of sound on few cores, whose subtitles come only when it is over.
PATIENCE_S = 3600.0
EVENTS = "text/event-stream"
BYTES_PER_MB = 1_000_000
STANDARD_INPUT = "-"
UNNAMED = "recording"  # what a server is told of a file without a name


@dataclass(frozen=True, slots=True)
class TranscribeOptions:
    """recording: `-` is standard input. format: one of FORMATS. language: ISO 639-1; None lets the
    server hear which it is."""

    url: str
    key: str | None
    recording: Path
    format: str
    language: str | None


def transcribe(options: TranscribeOptions) -> int:
    """Prints the transcript: text as it is heard, anything else once it is whole."""
    if options.language is not None and not options.language.isascii():
        raise CommandError("--language: it is a code of two letters, such as en or de", USAGE)
    with (
        _opened(options.recording) as file,
        open_server(options.url, options.key, patience_s=PATIENCE_S) as server,
        Progress("uploading") as progress,
    ):
        upload = _Upload(file, progress)
        is_named = str(options.recording) != STANDARD_INPUT
        name = options.recording.name.encode(errors="replace").decode() if is_named else UNNAMED
        files = {"file": (name, upload)}
        with server.post(PATH, data=_fields(options), files=files) as answer:
            progress.begin("hearing")
            heard = _heard(answer)
            for number, text in enumerate(heard):
                if number == 0:
                    progress.stop()
                print(text, end="", flush=True)
    return OK


def _fields(options: TranscribeOptions) -> dict[str, str]:
    fields = {"model": MODEL, "response_format": options.format}
    if options.format == TEXT:
        fields["stream"] = "true"
    if options.language is not None:
        fields["language"] = options.language
    return fields


def _opened(path: Path) -> BinaryIO:
    try:
        return _received() if str(path) == STANDARD_INPUT else path.open("rb")
    except FileNotFoundError as error:
        raise CommandError(f"{path}: there is no such file", USAGE) from error
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror or error}", USAGE) from error


def _received() -> BinaryIO:
    """All of standard input, in a file that nobody else sees: an upload tells its length first."""
    if sys.stdin.isatty():
        raise CommandError("no recording comes from a terminal: pipe one into this", USAGE)
    file = tempfile.TemporaryFile()
    shutil.copyfileobj(sys.stdin.buffer, file)
    if not file.tell():
        file.close()
        raise CommandError("there is nothing on standard input", USAGE)
    file.seek(0)
    return file


class _Upload:
    """A file that tells how much of it has been sent."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file = file
        self._progress = progress
        self._size_bytes = os.fstat(file.fileno()).st_size

    def read(self, size_bytes: int = -1) -> bytes:
        data = self._file.read(size_bytes)
        sent_bytes = self._file.tell()
        if data:
            detail = f"{sent_bytes / BYTES_PER_MB:.1f} MB"
            self._progress.show(detail, sent_bytes / max(1, self._size_bytes))
        else:
            self._progress.begin("hearing")
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _heard(answer: httpx.Response) -> Iterator[str]:
    """What is to be printed, in pieces; it ends with a line's end."""
    last = ""
    is_events = answer.headers.get("content-type", "").startswith(EVENTS)
    for text in _events(answer) if is_events else answer.iter_text():
        if text:
            last = text
            yield text
    if not last.endswith("\n"):
        yield "\n"


def _events(answer: httpx.Response) -> Iterator[str]:
    """The text of a stream of events. Raises CommandError if it breaks off."""
    for line in answer.iter_lines():
        if not line.startswith("data:") or not line.removeprefix("data:").strip().startswith("{"):
            continue
        event: dict[str, Any] = json.loads(line.removeprefix("data:"))
        match event.get("type"):
            case "transcript.text.delta":
                yield str(event["delta"])
            case "transcript.text.done":
                return
            case "error":
                raise CommandError(f"the server broke off: {event['error']['message']}")
            case _:
                pass
    raise CommandError("the server broke off in the middle of the transcript")
