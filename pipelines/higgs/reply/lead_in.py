"""The silence before a reply's first sound, which a listener takes for slowness."""

from __future__ import annotations

import numpy as np

from pipelines.higgs.config import CODEC_RATE_HZ
from pipelines.types import Samples

AUDIBLE = 0.003  # of full scale, -50 dBFS: breath and room, but no speech, lie below
KEPT_MS = 20  # before the first sound: an onset that begins at once clicks
MOST_MS = 600  # beyond, silence is part of what is said


class LeadIn:
    """Leaves out leading silence, for at most `MOST_MS`."""

    def __init__(self) -> None:
        self._is_over = False
        self.trimmed_samples = 0

    def trim(self, samples: Samples) -> Samples:
        """What of the next samples is to be heard."""
        if self._is_over or not len(samples):
            return samples
        audible = np.flatnonzero(np.abs(samples) > AUDIBLE)
        room = MOST_MS * CODEC_RATE_HZ // 1000 - self.trimmed_samples
        silent = int(audible[0]) if len(audible) else len(samples)
        if len(audible):
            silent = max(0, silent - KEPT_MS * CODEC_RATE_HZ // 1000)
        dropped = min(silent, room)
        self._is_over = len(audible) > 0 or dropped == room
        self.trimmed_samples += dropped
        return samples[dropped:]
