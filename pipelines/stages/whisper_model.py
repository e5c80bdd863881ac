"""Whisper with a window as short as the audio allows, on whichever engine runs the network.

The encoder takes a spectrogram that is shorter than the 30 s it was trained on. A window of 10 s is
four times cheaper at the same word error rate; one that ends right after the speech makes the
decoder repeat itself, so some silence is left after it. Where the short window gives a doubtful
text, the full one is tried too.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pipelines.stages.mel import HOP_SAMPLES, log_mel
from pipelines.stages.whisper_vocabulary import Vocabulary
from pipelines.stages.whisper_words import fit_to_sound, place_words, spell_words
from pipelines.types import HEARING_RATE_HZ, HeardWord, Samples

ENGLISH = "en"
FRAMES_PER_S = HEARING_RATE_HZ // HOP_SAMPLES  # of the spectrogram
POSITIONS_PER_S = FRAMES_PER_S // 2  # of the encoder, which halves their number

FULL_WINDOW_S = 30.0  # what Whisper was trained on
SHORT_WINDOW_S = 10.0  # the least that does not make the decoder repeat itself
SILENCE_AFTER_S = 4.0  # the least silence after the speech, for the same reason
WINDOW_UNIT_SAMPLES = 2 * HOP_SAMPLES  # the encoder halves the number of frames

TOKENS_PER_S = 7  # of the fastest talkers, rounded up; bounds a decoder that repeats itself
TOKENS_AT_LEAST = 12  # a short answer may be spelled out
PROMPT_MAX_TOKENS = 64  # of likely words; a longer prompt is rather continued than used

DOUBTFUL_LOG_PROBABILITY = -0.8  # mean per token; below, one clip in two has wrong words
DOUBTFUL_WORDS_PER_S = 4.5  # faster than people talk ...
DOUBTFUL_WORDS_AT_LEAST = 3  # ... beyond a short answer
REPETITIVE_RATIO = 2.4  # of zlib's compression; Whisper's own threshold for loops


@dataclass(frozen=True, slots=True)
class Reading:
    """How a hearing came about: what its words can be placed by.

    encoded: as the engine has it. start: what preceded the text. frames: of the audio, without
    what fills the window.
    """

    encoded: Any
    start: Sequence[int]
    tokens: Sequence[int]
    frames: int


@dataclass(frozen=True, slots=True)
class Hearing:
    """What the model heard in one piece of audio, and how sure it was."""

    text: str
    duration_s: float
    log_probability: float  # mean per token
    no_speech: float  # the model's probability that nobody speaks
    compression: float  # of the text; loops compress well
    language: str | None = None  # ISO 639-1, as told to it or heard
    reading: Reading | None = None

    @property
    def words(self) -> int:
        return len(self.text.split())

    @property
    def doubtful(self) -> bool:
        most_words = self.duration_s * DOUBTFUL_WORDS_PER_S + DOUBTFUL_WORDS_AT_LEAST
        return (
            self.log_probability < DOUBTFUL_LOG_PROBABILITY
            or self.words > most_words
            or self.compression > REPETITIVE_RATIO
        )


@dataclass(frozen=True, slots=True)
class Decoded:
    """tokens: those written, without the end. log_probability: of all of them and the end, by the
    number of tokens. no_speech: the probability, at the start of the transcript, that nobody
    speaks."""

    tokens: Sequence[int]
    log_probability: float
    no_speech: float


class WhisperEngine(Protocol):
    """What runs the network. Blocking; one call at a time."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def bands(self) -> int:
        """Of the spectrogram."""
        ...

    @property
    def is_multilingual(self) -> bool: ...

    def encode(self, features: npt.NDArray[np.float32], pause: Callable[[], None]) -> Any:
        """features: [bands, frames], an even number of frames, at most those of 30 s.

        pause: called between steps where the engine can; what it raises passes through.
        """
        ...

    def detect_language(self, encoded: Any) -> int | None:
        """The marker of the most likely language."""
        ...

    def decode(
        self, encoded: Any, start: Sequence[int], limit_tokens: int, pause: Callable[[], None]
    ) -> Decoded:
        """The most likely token each time, until the end or the limit.

        start: what precedes the text. pause: as above, between tokens.
        """
        ...

    def align(
        self, encoded: Any, start: Sequence[int], tokens: Sequence[int], frames: int
    ) -> Sequence[float] | None:
        """When each token was said, in seconds, and last the end of the last; None: unknown.

        start: as for `decode`, without what precedes the transcript. frames: of the spectrogram,
        those of the audio.
        """
        ...


class WhisperModel:
    """Blocking. One call at a time."""

    def __init__(self, engine: WhisperEngine) -> None:
        self._engine = engine
        self._vocabulary = engine.vocabulary

    @property
    def is_multilingual(self) -> bool:
        return self._engine.is_multilingual

    def place(self, hearing: Hearing, audio: Samples) -> list[HeardWord]:
        """The words of a hearing of this audio, in order; none if the engine cannot tell."""
        reading = hearing.reading
        if reading is None or not reading.tokens:
            return []
        begins_s = self._engine.align(
            reading.encoded, reading.start, reading.tokens, reading.frames
        )
        if begins_s is None:
            return []
        words = spell_words(reading.tokens, self._vocabulary, hearing.language)
        return fit_to_sound(place_words(words, begins_s), audio)

    def hear(
        self,
        audio: Samples,
        language: str | None,
        prompt: str = "",
        pause: Callable[[], None] = lambda: None,
        *,
        translates: bool = False,
    ) -> Iterator[Hearing]:
        """One hearing of at most 30 s of audio, and a second one if the first is doubtful.

        language: ISO 639-1; None: the model decides. prompt: likely words. pause: called before
        each long step; what it raises passes through. translates: to English; only of a model of
        many languages. The last hearing is the best one.
        """
        duration_s = len(audio) / HEARING_RATE_HZ
        window_s = min(FULL_WINDOW_S, max(SHORT_WINDOW_S, duration_s + SILENCE_AFTER_S))
        first = self._hear(audio, window_s, language, prompt, pause, translates)
        yield first
        if not first.doubtful or window_s == FULL_WINDOW_S:
            return
        second = self._hear(audio, FULL_WINDOW_S, language, "", pause, translates)
        yield first if _better(first, second) else second

    def _hear(
        self,
        audio: Samples,
        window_s: float,
        language: str | None,
        prompt: str,
        pause: Callable[[], None],
        translates: bool,
    ) -> Hearing:
        pause()
        duration_s = len(audio) / HEARING_RATE_HZ
        units = int(window_s * HEARING_RATE_HZ) // WINDOW_UNIT_SAMPLES
        window = np.zeros(units * WINDOW_UNIT_SAMPLES, np.float32)
        heard = audio[: len(window)]
        window[: len(heard)] = heard
        encoded = self._engine.encode(log_mel(window, self._engine.bands), pause)
        start = self._start(encoded, language, "translate" if translates else "transcribe")
        limit_tokens = TOKENS_AT_LEAST + int(duration_s * TOKENS_PER_S)
        decoded = self._engine.decode(
            encoded, [*self._context(prompt), *start], limit_tokens, pause
        )
        text = self._vocabulary.decode(decoded.tokens).strip()
        raw = text.encode()
        return Hearing(
            text=text,
            duration_s=duration_s,
            log_probability=decoded.log_probability,
            no_speech=decoded.no_speech,
            compression=len(raw) / len(zlib.compress(raw)) if raw else 0.0,
            language=self._language_of(start),
            reading=Reading(encoded, start, decoded.tokens, len(heard) // HOP_SAMPLES),
        )

    def _language_of(self, start: Sequence[int]) -> str | None:
        if not self._engine.is_multilingual:
            return ENGLISH
        # Behind the start of the transcript: the language, where there is one, and two more.
        return self._vocabulary.name(start[1]) if len(start) > 3 else None

    def _start(self, encoded: Any, language: str | None, task: str) -> list[int]:
        if not self._engine.is_multilingual:
            return self._markers("startoftranscript", "notimestamps")
        chosen = None if language is None else self._vocabulary.special(language)
        if chosen is None:
            chosen = self._engine.detect_language(encoded)
        marker = [] if chosen is None else [chosen]
        return [
            *self._markers("startoftranscript"),
            *marker,
            *self._markers(task, "notimestamps"),
        ]

    def _context(self, prompt: str) -> list[int]:
        if not prompt.strip():
            return []
        words = self._vocabulary.encode(" " + prompt.strip())[-PROMPT_MAX_TOKENS:]
        return [*self._markers("startofprev"), *words]

    def _markers(self, *names: str) -> list[int]:
        found = [self._vocabulary.special(name) for name in names]
        return [number for number in found if number is not None]


def _better(first: Hearing, second: Hearing) -> bool:
    if first.compression > REPETITIVE_RATIO or second.compression > REPETITIVE_RATIO:
        return first.compression < second.compression
    return first.log_probability > second.log_probability
