"""How much audio a file says that it has: what tells that the end of it is missing.

Only what the encoder wrote counts; where there is no such figure, FFmpeg guesses one from the size
of the file, and a shortened file is as good as a short one.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO

TELLING = frozenset({"aiff", "caf", "flac", "matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2", "w64"})
UNKNOWN_FROM_BYTES = 0x7FFF_0000  # who writes into a pipe puts about the largest number there is
RIFF_HEAD_BYTES = 8  # not counted in the size that follows "RIFF"
TOLERATED_BYTES = 4096  # some writers count their heads twice, or a padding that is not there
ID3_HEAD_BYTES = 10
MP3_FRAME_BYTES = 2048  # the longest frame, and so the first
MP3_COUNTS = (b"Xing", b"Info", b"VBRI")  # heads of the table that tells the length


def is_cut_wave(file: BinaryIO) -> bool:
    """Whether a WAV is shorter than its header says. Leaves the file at its start."""
    head = _peek(file, 0, 12)
    if head[:4] != b"RIFF" or head[8:] != b"WAVE":
        return False
    told_bytes = int.from_bytes(head[4:8], "little")
    if not 0 < told_bytes < UNKNOWN_FROM_BYTES:
        return False
    file.seek(0, os.SEEK_END)
    size_bytes = file.tell()
    file.seek(0)
    return told_bytes + RIFF_HEAD_BYTES > size_bytes + TOLERATED_BYTES


def declared_s(file: BinaryIO, container: Any, stream: Any) -> float | None:
    """Of the audio, by the container's own word; None where it has none."""
    kind = container.format.name
    if kind == "mp3":
        if not _counts_frames(file):
            return None
    elif kind not in TELLING:
        return None
    if stream.duration is not None:
        return float(stream.duration * stream.time_base)
    # Of the whole file, which may have a picture for longer.
    if container.duration is None or len(container.streams) > 1:
        return None
    return container.duration / 1_000_000  # FFmpeg's microseconds


def _counts_frames(file: BinaryIO) -> bool:
    """Whether an MP3 begins with a table of its frames; behind its tag, which may hold pictures."""
    at = file.tell()
    head = _peek(file, 0, ID3_HEAD_BYTES)
    tag_bytes = 0
    if head[:3] == b"ID3":
        tag_bytes = ID3_HEAD_BYTES
        for place, seven_bits in enumerate(reversed(head[6:10])):
            tag_bytes += (seven_bits & 0x7F) << (7 * place)
    first_frame = _peek(file, tag_bytes, MP3_FRAME_BYTES)
    file.seek(at)
    return any(mark in first_frame for mark in MP3_COUNTS)


def _peek(file: BinaryIO, first: int, count: int) -> bytes:
    file.seek(first)
    found = file.read(count)
    file.seek(0)
    return found
