"""The silence before a reply's first sound, which a listener takes for slowness."""

from __future__ import annotations

import numpy as np

from pipelines.higgs.config import CODEC_RATE_HZ
from pipelines.types import Samples

AUDIBLE = 0.003  # of full scale, -50 dBFS: breath and room, but no speech, lie below
KEPT_MS = 20  # before the first sound: an onset that begins at once clicks
MOST_MS = 600  # beyond, silence is part of what is said

KEPT_SAMPLES = KEPT_MS * CODEC_RATE_HZ // 1000
MOST_SAMPLES = MOST_MS * CODEC_RATE_HZ // 1000


class LeadIn:
    """Leaves out leading silence, for at most `MOST_MS`.

    What is heard does not depend on the pieces in which samples come: of a silence that goes on,
    the end is held back until it is known what follows.
    """

    def __init__(self) -> None:
        self._is_over = False
        self._held = np.zeros(0, np.float32)
        self.trimmed_samples = 0

    def trim(self, samples: Samples) -> Samples:
        """What is to be heard now: of the next samples and, at the first sound, of those before."""
        if self._is_over or not len(samples):
            return samples
        waiting = np.concatenate([self._held, samples])
        audible = np.flatnonzero(np.abs(waiting) > AUDIBLE)
        silent = int(audible[0]) if len(audible) else len(waiting)
        dropped = min(max(0, silent - KEPT_SAMPLES), MOST_SAMPLES - self.trimmed_samples)
        self.trimmed_samples += dropped
        self._is_over = len(audible) > 0 or self.trimmed_samples == MOST_SAMPLES
        rest = waiting[dropped:]
        if self._is_over:
            self._held = self._held[:0]
            return rest
        self._held = rest
        return rest[:0]
