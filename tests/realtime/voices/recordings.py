"""Sound files for tests of uploads."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
import soundfile

RATE_HZ = 24_000


def tone(length_s: float, rate_hz: int = RATE_HZ, level: float = 0.3) -> npt.NDArray[np.float32]:
    at = np.arange(int(length_s * rate_hz)) / rate_hz
    return (level * np.sin(2 * np.pi * 220 * at)).astype(np.float32)


def sound_file(
    samples: npt.NDArray[np.float32],
    rate_hz: int = RATE_HZ,
    format: str = "WAV",
    subtype: str | None = None,
) -> bytes:
    """samples: [n] or [n, channels]."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate_hz, format=format, subtype=subtype)
    return file.getvalue()


def recording(length_s: float = 1.5, level: float = 0.3) -> bytes:
    return sound_file(tone(length_s, level=level))
