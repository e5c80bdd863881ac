"""The sound card of `parley talk --mic`, through the optional `sounddevice` package."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from realtime.commands.errors import CommandError
from realtime.commands.wire_client import CHUNK_MS, Pcm

QUEUE_CHUNKS = 50  # a second of audio that the network may lag behind; then the oldest is lost


class Headset:
    """Microphone and loudspeaker at one rate, int16 mono."""

    def __init__(self, rate_hz: int) -> None:
        self.block_samples = rate_hz * CHUNK_MS // 1000
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[Pcm] = asyncio.Queue(QUEUE_CHUNKS)
        self._waiting = np.zeros(0, np.int16)
        self._lock = threading.Lock()

    def play(self, pcm: Pcm) -> None:
        with self._lock:
            self._waiting = np.concatenate([self._waiting, pcm])

    def flush(self) -> None:
        with self._lock:
            self._waiting = self._waiting[:0]

    async def recorded(self) -> AsyncIterator[Pcm]:
        while True:
            yield await self._chunks.get()

    def exchange(self, heard: Pcm, sounding: Pcm) -> None:
        """One block of the sound card; runs in its thread."""
        self._loop.call_soon_threadsafe(self._keep, heard[:, 0].copy())
        with self._lock:
            ready, self._waiting = (
                self._waiting[: len(sounding)],
                self._waiting[len(sounding) :],
            )
        sounding[:, 0] = 0
        sounding[: len(ready), 0] = ready

    def _keep(self, chunk: Pcm) -> None:
        if self._chunks.full():
            self._chunks.get_nowait()
        self._chunks.put_nowait(chunk)


@contextmanager
def open_headset(rate_hz: int) -> Iterator[Headset]:
    """Opens the default devices. Raises CommandError when there are none."""
    try:
        sounddevice: Any = importlib.import_module("sounddevice")
    except (ImportError, OSError) as error:
        raise CommandError(
            f"--mic needs the sounddevice package and PortAudio ({error}); install them with: "
            ".venv/bin/pip install -e '.[microphone]', and on Debian: apt-get install libportaudio2"
        ) from error
    headset = Headset(rate_hz)

    def callback(heard: Pcm, sounding: Pcm, _frames: int, _time: Any, _status: Any) -> None:
        headset.exchange(heard, sounding)

    try:
        stream = sounddevice.Stream(
            samplerate=rate_hz,
            blocksize=headset.block_samples,
            channels=1,
            dtype="int16",
            callback=callback,
        )
    except sounddevice.PortAudioError as error:
        raise CommandError(f"no microphone and loudspeaker can be opened: {error}") from error
    with stream:
        yield headset
