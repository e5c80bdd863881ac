"""The audio of conversation items, for `conversation.item.retrieve` and for late recognition.

Users' turns are kept at the hearing rate, replies at their wire rate as far as they were sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from realtime.audio.quantise import IntSamples

# Per session, oldest items first: six minutes of users' turns, or one item of the longest kind.
DEFAULT_LIMIT_BYTES = 12 * 2**20


@dataclass(slots=True)
class Recording:
    """One item's samples. `start`: the audio time of the first one, of a user's turn."""

    rate_hz: int
    start: int = 0
    pieces: list[IntSamples] = field(default_factory=list[IntSamples])

    @property
    def size_bytes(self) -> int:
        return sum(piece.nbytes for piece in self.pieces)

    @property
    def samples(self) -> int:
        return sum(len(piece) for piece in self.pieces)

    @property
    def duration_ms(self) -> int:
        return self.samples * 1000 // self.rate_hz

    def joined(self) -> IntSamples:
        return np.concatenate(self.pieces) if self.pieces else np.zeros(0, dtype=np.int16)


class ItemAudio:
    """Recordings by key: an item's id, or the handle of audio that a client put into an item."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._recordings: dict[str, Recording] = {}
        self._handles: dict[str, list[str]] = {}  # by item: the handles of its parts
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._recordings)

    def get(self, key: str) -> Recording | None:
        return self._recordings.get(key)

    def append(self, key: str, samples: IntSamples, rate_hz: int, start: int = 0) -> None:
        """More of an item, int16 [n]. What does not fit the session's limit is left out."""
        self._make_room(samples.nbytes, spare=key)
        if not len(samples) or self.size_bytes + samples.nbytes > self._limit_bytes:
            return
        recording = self._recordings.get(key)
        if recording is None:
            recording = self._recordings[key] = Recording(rate_hz, start)
        recording.pieces.append(samples)
        self.size_bytes += samples.nbytes

    def trim(self, key: str, audio_ms: int) -> None:
        """Cut an item's audio to its first `audio_ms`."""
        recording = self._recordings.get(key)
        if recording is None:
            return
        # A copy: a slice would keep the whole in memory.
        kept = recording.joined()[: audio_ms * recording.rate_hz // 1000].copy()
        self.size_bytes += kept.nbytes - recording.size_bytes
        recording.pieces = [kept] if len(kept) else []

    def link(self, item_id: str, handle: str) -> None:
        """The recording under `handle` goes when the item does."""
        if handle in self._recordings and handle != item_id:
            self._handles.setdefault(item_id, []).append(handle)

    def forget(self, item_id: str) -> None:
        for key in (item_id, *self._handles.pop(item_id, ())):
            recording = self._recordings.pop(key, None)
            if recording is not None:
                self.size_bytes -= recording.size_bytes

    def clear(self) -> None:
        self._recordings.clear()
        self._handles.clear()
        self.size_bytes = 0

    def _make_room(self, wanted_bytes: int, spare: str) -> None:
        for key in list(self._recordings):
            if self.size_bytes + wanted_bytes <= self._limit_bytes:
                return
            if key != spare:
                self.size_bytes -= self._recordings.pop(key).size_bytes
