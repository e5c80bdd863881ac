"""The loudspeaker of `parley say`, through the optional `sounddevice` package."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from realtime.commands.errors import CommandError

Play = Callable[[bytes], object]  # whole samples; waits while there is enough to play


@contextmanager
def open_loudspeaker(rate_hz: int) -> Iterator[Play]:
    """16-bit little-endian mono at this rate; at its end all of it has been heard.

    Raises CommandError where there is none.
    """
    try:
        sounddevice: Any = importlib.import_module("sounddevice")
    except (ImportError, OSError) as error:
        raise CommandError(
            f"playing needs the sounddevice package and PortAudio ({error}): write to a file with "
            "-o FILE, or install them with: .venv/bin/pip install -e '.[microphone]', and on "
            "Debian: apt-get install libportaudio2"
        ) from error
    try:
        stream = sounddevice.RawOutputStream(samplerate=rate_hz, channels=1, dtype="int16")
    except sounddevice.PortAudioError as error:
        raise CommandError(
            f"no loudspeaker can be opened ({error}): write to a file with -o FILE"
        ) from error
    with stream:
        yield stream.write
