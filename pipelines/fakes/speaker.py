"""A scripted voice: a tone per word, in exact time."""

from __future__ import annotations

import functools
import re
from collections import deque
from collections.abc import AsyncIterator

import numpy as np

from pipelines.fakes.clock import Clock, LoopClock, sleep_after
from pipelines.fakes.hearing import REMEMBERED_REQUESTS
from pipelines.runtime.async_stage import AsyncDuplexStage
from pipelines.runtime.lead import SPEAKER_LEAD
from pipelines.runtime.ticket import Ticket
from pipelines.types import Samples, SpeakRequest, SpeechDelta, StageError, WordEnd

TONE_HZ = 220.0
TONE_LEVEL = 0.3  # well above any threshold of speech, well below clipping
RATE_HZ = 24_000


class FakeSpeaker(AsyncDuplexStage[SpeakRequest, str, SpeechDelta]):
    """Speaks each word as `ms_per_word` of tone, one SpeechDelta per word, with its end.

    first_ms: from the first pushed text until the work on its first word begins.
    real_time_factor: time that a word takes to make, as a part of the time that it lasts.
    fail_after_words: how many words of a request are spoken before it fails; 2.5 fails in the
        middle of the third, half of which is still heard.
    copies_voices: whether a request may bring a sample, which changes nothing of its sound.
    """

    def __init__(
        self,
        *,
        ms_per_word: float = 300.0,
        first_ms: float = 0.0,
        real_time_factor: float = 0.0,
        rate_hz: int = RATE_HZ,
        fail_after_words: float | None = None,
        copies_voices: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self._ms_per_word = ms_per_word
        self._first_ms = first_ms
        self._real_time_factor = real_time_factor
        self._rate_hz = rate_hz
        self._fail_after_words = fail_after_words
        self._copies_voices = copies_voices
        self._clock = clock or LoopClock()
        self.requests: deque[SpeakRequest] = deque(maxlen=REMEMBERED_REQUESTS)
        self.pushed: deque[tuple[str, str]] = deque(maxlen=REMEMBERED_REQUESTS)  # (request, text)
        self.made_words = 0  # of all requests, heard or not
        super().__init__("fake-speaker", self._speak, lead=SPEAKER_LEAD)

    async def _speak(
        self, request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
    ) -> AsyncIterator[SpeechDelta]:
        self.requests.append(request)
        if request.sample is not None and not self._copies_voices:
            raise StageError(
                "copying_unsupported", "The scripted voice copies no others, as it was told."
            )
        spoken_words = 0
        text_end = 0
        async for text in inputs:
            self.pushed.append((request.request_id, text))
            if spoken_words == 0:
                await sleep_after(self._clock, self._first_ms)
            for word in re.findall(r"\s*\S+\s*", text):
                part = self._part_of_word(spoken_words)
                lasts_ms = self._ms_per_word * part / request.speed
                await sleep_after(self._clock, lasts_ms * self._real_time_factor)
                if part < 1:
                    if part > 0:
                        yield SpeechDelta(self._tone(lasts_ms), self._rate_hz, text_end)
                    raise StageError("tts_failed", "The scripted voice fails here, as it was told.")
                spoken_words += 1
                self.made_words += 1
                tone = self._tone(lasts_ms)
                over = WordEnd(len(tone), text_end + len(word.rstrip()))
                text_end += len(word)
                yield SpeechDelta(tone, self._rate_hz, text_end, (over,))

    def _part_of_word(self, spoken_words: int) -> float:
        if self._fail_after_words is None:
            return 1.0
        return min(1.0, max(0.0, self._fail_after_words - spoken_words))

    def _tone(self, lasts_ms: float) -> Samples:
        # A copy, because whoever gets samples may change them.
        return _tone(round(lasts_ms * self._rate_hz / 1000), self._rate_hz).copy()


@functools.lru_cache(maxsize=64)
def _tone(samples: int, rate_hz: int) -> Samples:
    moments_s = np.arange(samples) / rate_hz
    return (TONE_LEVEL * np.sin(2 * np.pi * TONE_HZ * moments_s)).astype(np.float32)
