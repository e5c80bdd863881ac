"""`parley say`: a text to a server, its speech into a file or to the loudspeaker."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from realtime.audio.wav import wav_header
from realtime.commands.errors import OK, USAGE, CommandError
from realtime.commands.http_client import open_server
from realtime.commands.loudspeaker import open_loudspeaker
from realtime.commands.output_file import require_writable
from realtime.commands.progress import Progress

PATH = "/v1/audio/speech"
SOUND_PATIENCE_S = 150.0  # for the next piece of sound; a busy server itself gives up before
PCM_RATE_HZ = 24_000  # of the format without a header
SAMPLE_BYTES = 2
BYTES_PER_KB = 1000
HEADER_BYTES = len(wav_header(PCM_RATE_HZ, 0))
RATE_AT = 24  # byte of it
SLOWEST, FASTEST = 0.25, 4.0
CHARACTERS_PER_S = 15  # of speech, roughly: for the bar alone
NEARLY = 0.99  # where a guess says that all has come, and it goes on
FORMATS = {
    ".wav": "wav",
    ".mp3": "mp3",
    ".opus": "opus",
    ".ogg": "opus",
    ".aac": "aac",
    ".flac": "flac",
    ".pcm": "pcm",
}


@dataclass(frozen=True, slots=True)
class SayOptions:
    """out: None plays it. is_streamed: play or write while it is made, not when it is whole."""

    url: str
    key: str | None
    text: str
    voice: str | None
    speed: float | None
    out: Path | None
    is_streamed: bool


def say(options: SayOptions) -> int:
    """Speaks one text. Raises CommandError when it cannot be heard whole."""
    _check(options)
    if options.out is not None:
        require_writable(options.out, "-o", tuple(FORMATS))
    if options.out is None:
        _play(options)
    else:
        _write(options, options.out)
    return OK


def _check(options: SayOptions) -> None:
    """What the server could not even be asked. Raises CommandError."""
    if not options.text.strip():
        raise CommandError("there is no text to say", USAGE)
    for what, text in (("the text", options.text), ("--voice", options.voice or "")):
        try:
            text.encode()
        except UnicodeEncodeError as error:  # of bytes in the arguments that were no text
            raise CommandError(f"{what} is no UTF-8 text ({error.reason})", USAGE) from error
    if options.speed is not None and not SLOWEST <= options.speed <= FASTEST:
        raise CommandError(
            f"--speed {options.speed:g}: it must be {SLOWEST:g} to {FASTEST:g}", USAGE
        )


def _play(options: SayOptions) -> None:
    with (
        open_loudspeaker(PCM_RATE_HZ) as play,
        _speech(options, "pcm") as chunks,
    ):
        for samples in _whole_samples(chunks if options.is_streamed else [b"".join(chunks)]):
            play(samples)


def _write(options: SayOptions, out: Path) -> None:
    format = FORMATS[out.suffix.lower()]
    with _speech(options, format) as chunks, _output(out, options.is_streamed) as file:
        for chunk in chunks:
            file.write(chunk)
        size_bytes = file.tell()
        if format == "wav":
            _tell_length(file, size_bytes)
    print(f"speech written to {out} ({size_bytes / BYTES_PER_KB:.0f} kB)")


@contextmanager
def _speech(options: SayOptions, format: str) -> Iterator[Iterator[bytes]]:
    with (
        open_server(options.url, options.key, patience_s=SOUND_PATIENCE_S) as server,
        Progress("speaking") as progress,
        server.post(PATH, json=_request(options, format)) as answer,
    ):
        yield _watched(answer.iter_bytes(), progress, options, format)


def read_text(argument: str) -> str:
    """The argument, or for "-" all of standard input. Raises CommandError."""
    if argument != "-":
        return argument
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise CommandError(f"standard input is no UTF-8 text ({error})", USAGE) from error


def _request(options: SayOptions, format: str) -> dict[str, Any]:
    # Streamed in any case: so there is progress to see, and a server that hangs is noticed.
    wanted = {
        "input": options.text,
        "voice": options.voice,
        "speed": options.speed,
        "response_format": format,
        # A FLAC file that is sent while it is made cannot tell its length.
        "stream": options.is_streamed or format != "flac",
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _watched(
    chunks: Iterator[bytes], progress: Progress, options: SayOptions, format: str
) -> Iterator[bytes]:
    expected_s = len(options.text) / CHARACTERS_PER_S / (options.speed or 1.0)
    rate_hz = PCM_RATE_HZ if format == "pcm" else None
    come_bytes = 0
    for chunk in chunks:
        if format == "wav" and come_bytes == 0:
            rate_hz = _rate_in(chunk)
        come_bytes += len(chunk)
        if rate_hz is None:
            progress.show(f"{come_bytes / BYTES_PER_KB:.0f} kB")
        else:
            come_s = come_bytes / SAMPLE_BYTES / rate_hz
            progress.show(f"{come_s:.1f} s of speech", min(NEARLY, come_s / expected_s))
        yield chunk


def _whole_samples(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The network cuts anywhere."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        whole = len(rest) - len(rest) % SAMPLE_BYTES
        if whole:
            yield rest[:whole]
        rest = rest[whole:]


@contextmanager
def _output(out: Path, is_streamed: bool) -> Iterator[IO[bytes]]:
    """A file that is there only when it is whole, unless it is to be read meanwhile."""
    path = out if is_streamed else out.with_name(f".{out.name}.part")
    try:
        try:
            with path.open("w+b") as file:
                yield file
            path.replace(out)
        finally:
            if path != out:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"-o {out}: {error.strerror or error}") from error


def _tell_length(file: IO[bytes], size_bytes: int) -> None:
    """Into the header of a WAV file, which was sent before anybody knew."""
    file.seek(0)
    rate_hz = _rate_in(file.read(HEADER_BYTES))
    if rate_hz is not None:
        file.seek(0)
        file.write(wav_header(rate_hz, (size_bytes - HEADER_BYTES) // SAMPLE_BYTES))


def _rate_in(header: bytes) -> int | None:
    is_wav = header.startswith(b"RIFF") and len(header) >= HEADER_BYTES
    return int.from_bytes(header[RATE_AT : RATE_AT + 4], "little") if is_wav else None
