"""The log-mel spectrogram of Whisper, which Smart Turn shares.

Frames of 25 ms every 10 ms under a periodic Hann window, power spectrum, bands of the Slaney mel
scale from 0 to 8 kHz with equal area, logarithm, eight decades of range (openai/whisper, audio.py;
the scale: Slaney, Auditory Toolbox, 1998).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from pipelines.types import HEARING_RATE_HZ, Samples

FRAME_SAMPLES = 400  # 25 ms
HOP_SAMPLES = 160  # 10 ms
BANDS = 80  # of all Whisper models up to the second `large`; the later ones have 128
RANGE_DECADES = 8.0  # what is quieter than the loudest by more is flattened

_LINEAR_TO_HZ = 1000.0  # the Slaney scale is linear up to here ...
_HZ_PER_MEL = 200.0 / 3.0
_LINEAR_MELS = _LINEAR_TO_HZ / _HZ_PER_MEL
_LOG_STEP = np.log(6.4) / 27.0  # ... and logarithmic beyond: 27 mels to 6.4 kHz


def log_mel(audio: Samples, bands: int = BANDS) -> npt.NDArray[np.float32]:
    """float32 [n] at 16 kHz to float32 [bands, n // 160], scaled as Whisper expects; n >= 400."""
    padded = np.pad(audio, FRAME_SAMPLES // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME_SAMPLES)[::HOP_SAMPLES]
    spectrum = np.fft.rfft(frames * _WINDOW, axis=-1)
    power = (spectrum.real**2 + spectrum.imag**2)[:-1].astype(np.float32)
    decades = np.log10(np.maximum(_filters(bands) @ power.T, 1e-10))
    decades = np.maximum(decades, decades.max() - RANGE_DECADES)
    return ((decades + 4.0) / 4.0).astype(np.float32)


def _to_hz(mels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    logarithmic = _LINEAR_TO_HZ * np.exp(_LOG_STEP * (mels - _LINEAR_MELS))
    return np.where(mels < _LINEAR_MELS, _HZ_PER_MEL * mels, logarithmic)


@cache
def _filters(bands: int) -> npt.NDArray[np.float32]:
    """The triangles of the bands: float32 [bands, 201]."""
    nyquist_hz = HEARING_RATE_HZ / 2
    top_mels = _LINEAR_MELS + np.log(nyquist_hz / _LINEAR_TO_HZ) / _LOG_STEP
    corners_hz = _to_hz(np.linspace(0.0, top_mels, bands + 2))
    bins_hz = np.linspace(0.0, nyquist_hz, FRAME_SAMPLES // 2 + 1)
    low, middle, high = corners_hz[:-2, None], corners_hz[1:-1, None], corners_hz[2:, None]
    rising = (bins_hz - low) / (middle - low)
    falling = (high - bins_hz) / (high - middle)
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    return (triangles * 2.0 / (high - low)).astype(np.float32)


_WINDOW = np.hanning(FRAME_SAMPLES + 1)[:-1].astype(np.float32)
