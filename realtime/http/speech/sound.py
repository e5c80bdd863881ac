"""A voice's sound at the speed and in the format that a client wants."""

from __future__ import annotations

from pipelines.types import Samples
from realtime.audio.encoding import SpeechEncoder
from realtime.audio.tempo import Tempo
from realtime.http.speech.order import SpeechOrder


class SentSound:
    """The part that computes: made and used in threads, one call after the other.

    rate_hz: of the voice; sent_hz: of what is sent. spoken_samples: before the tempo; samples:
    after it. Both at the voice's rate.
    """

    def __init__(self, order: SpeechOrder, rate_hz: int, is_streamed: bool) -> None:
        self.rate_hz = rate_hz
        self.spoken_samples = 0
        self.samples = 0
        self._tempo = Tempo(rate_hz, order.speed)
        self._encoder = SpeechEncoder(order.format, rate_hz, is_streamed=is_streamed)
        self.sent_hz = self._encoder.rate_hz

    def process(self, samples: Samples) -> bytes:
        self.spoken_samples += len(samples)
        return self._encode(self._tempo.process(samples))

    def finish(self) -> bytes:
        return self._encode(self._tempo.finish()) + self._encoder.finish()

    def _encode(self, samples: Samples) -> bytes:
        self.samples += len(samples)
        return self._encoder.encode(samples)
