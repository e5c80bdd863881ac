"""How loud a frame is, and how to keep a voice from clipping."""

from __future__ import annotations

import math

import numpy as np

from realtime.audio.quantise import FloatSamples

_QUIETEST_DBFS = -100.0  # below the noise of any 16-bit source; also the level of pure zeros

PCM_CEILING = 0.98  # leaves room for the rounding of the client's own resampler
# G.711 telephony distorts near full scale: peaks stay 3 dB below it.
TELEPHONE_CEILING = 0.707
_KNEE = 0.8  # of the ceiling: quieter samples pass unchanged


def level_dbfs(samples: FloatSamples) -> float:
    """The root mean square of float32 [n] in dB below full scale."""
    if len(samples) == 0:
        return _QUIETEST_DBFS
    power = float(np.dot(samples, samples)) / len(samples)
    if power <= 0.0:
        return _QUIETEST_DBFS
    return max(_QUIETEST_DBFS, 10.0 * math.log10(power))


def soften(samples: FloatSamples, ceiling: float) -> FloatSamples:
    """Bend peaks smoothly below `ceiling` instead of clipping them.

    A curve without memory, so the result does not depend on how the audio was cut into chunks.
    """
    knee = ceiling * _KNEE
    magnitude = np.abs(samples)
    if len(samples) == 0 or float(magnitude.max()) <= knee:
        return samples
    room = ceiling - knee
    bent = knee + room * np.tanh((magnitude - knee) / room)
    return np.where(magnitude <= knee, samples, np.copysign(bent, samples)).astype(np.float32)
