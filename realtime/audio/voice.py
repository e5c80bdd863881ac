"""From a voice's own samples to samples that may leave on the wire."""

from __future__ import annotations

from realtime.audio.level import soften
from realtime.audio.quantise import FloatSamples
from realtime.audio.resample import VoiceResampler


class VoiceChain:
    """One reply's audio: resampled to `to_hz`, peaks bent below `ceiling`. Sample counts add up."""

    def __init__(self, to_hz: int, ceiling: float) -> None:
        self._to_hz = to_hz
        self._ceiling = ceiling
        self._resampler: VoiceResampler | None = None
        self._from_hz = 0

    def process(self, samples: FloatSamples, from_hz: int) -> FloatSamples:
        """float32 [n] at `from_hz` to float32 [m]. Raises ValueError if the rate changes."""
        if self._resampler is None:
            self._resampler = VoiceResampler(from_hz, self._to_hz)
            self._from_hz = from_hz
        elif from_hz != self._from_hz:
            raise ValueError(
                f"a reply's audio changed its rate from {self._from_hz} to {from_hz} Hz half-way"
            )
        return soften(self._resampler.process(samples), self._ceiling)

    def flush(self) -> FloatSamples | None:
        """The last samples; None if there was no audio at all."""
        if self._resampler is None:
            return None
        return soften(self._resampler.flush(), self._ceiling)
