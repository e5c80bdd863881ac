"""The header of a WAV file of 16-bit mono PCM, whose length may be unknown."""

from __future__ import annotations

import struct

_SAMPLE_BYTES = 2
_HEADER_BYTES = 44
# What readers take to mean "until the end of the file", as for a recording made into a pipe.
_UNKNOWN_BYTES = 0xFFFF_FFFF


def wav_header(rate_hz: int, total_samples: int | None) -> bytes:
    """44 bytes; total_samples None, or more than 4 GiB of them: of unknown length."""
    data_bytes = _UNKNOWN_BYTES if total_samples is None else total_samples * _SAMPLE_BYTES
    riff_bytes = data_bytes + _HEADER_BYTES - 8
    if riff_bytes > _UNKNOWN_BYTES:
        data_bytes = riff_bytes = _UNKNOWN_BYTES
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        riff_bytes,
        b"WAVE",
        b"fmt ",
        16,  # bytes of this chunk
        1,  # PCM
        1,  # channel
        rate_hz,
        rate_hz * _SAMPLE_BYTES,
        _SAMPLE_BYTES,
        8 * _SAMPLE_BYTES,
        b"data",
        data_bytes,
    )
