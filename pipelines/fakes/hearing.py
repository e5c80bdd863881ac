"""Scripted ears: a detector, a judge and a recogniser that answer as they are told."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

import numpy as np

from pipelines.fakes.clock import Clock, LoopClock, sleep_after
from pipelines.ports import Progress
from pipelines.runtime.async_stage import AsyncDuplexStage
from pipelines.runtime.ticket import Ticket
from pipelines.types import (
    HEARING_RATE_HZ,
    HeardWord,
    RecogniseRequest,
    Samples,
    StageError,
    Transcript,
)

SPEECH, SILENCE = 0.98, 0.02  # probabilities far from any threshold
LOUD_DBFS = -45.0  # between the noise of a quiet room and speech
REMEMBERED_REQUESTS = 1000  # for tests to look at; a demo must not grow for ever

Probability = Callable[[int, Samples], float]  # frames before this one, and the frame


def by_energy(loud_dbfs: float = LOUD_DBFS) -> Probability:
    """Speech is whatever is louder than `loud_dbfs` (RMS of a frame)."""

    def probability(_: int, frame: Samples) -> float:
        level = float(np.sqrt(np.mean(np.square(frame)))) if frame.size else 0.0
        return SPEECH if 20 * np.log10(level + 1e-9) > loud_dbfs else SILENCE

    return probability


def by_frame(probabilities: Sequence[float]) -> Probability:
    """One probability per frame of 32 ms, then silence."""

    def probability(number: int, _: Samples) -> float:
        return probabilities[number] if number < len(probabilities) else SILENCE

    return probability


class FakeDetectorStage:
    def __init__(self, probability: Probability | None = None) -> None:
        self._probability = probability or by_energy()
        self._open: set[FakeDetector] = set()

    @property
    def name(self) -> str:
        return "fake-detector"

    @property
    def active(self) -> int:
        return len(self._open)

    async def start(self, progress: Progress) -> None:
        progress(f"{self.name} is ready")

    async def close(self) -> None:
        self._open.clear()

    def open(self) -> FakeDetector:
        detector = FakeDetector(self._probability, self._open)
        self._open.add(detector)
        return detector


class FakeDetector:
    """`reset` starts the script again."""

    def __init__(self, probability: Probability, opened: set[FakeDetector]) -> None:
        self._probability = probability
        self._opened = opened
        self._frames = 0

    async def step(self, frame: Samples) -> float:
        answer = self._probability(self._frames, frame)
        self._frames += 1
        return answer

    def reset(self) -> None:
        self._frames = 0

    def close(self) -> None:
        self._opened.discard(self)


class FakeJudge:
    """Gives its answers in order, the last one for ever; an answer may be a StageError."""

    def __init__(
        self,
        answers: Sequence[float | StageError] = (SPEECH,),
        delay_ms: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        self._answers = deque(answers)
        self._delay_ms = delay_ms
        self._clock = clock or LoopClock()
        self.asked_samples: deque[int] = deque(maxlen=REMEMBERED_REQUESTS)

    @property
    def name(self) -> str:
        return "fake-judge"

    async def start(self, progress: Progress) -> None:
        progress(f"{self.name} is ready")

    async def close(self) -> None:
        """Holds nothing."""

    async def ask(self, audio: Samples) -> float:
        self.asked_samples.append(len(audio))
        answer = self._answers.popleft() if len(self._answers) > 1 else self._answers[0]
        await sleep_after(self._clock, self._delay_ms)
        if isinstance(answer, StageError):
            raise answer
        return answer


Texts = Sequence[str | StageError] | Callable[[RecogniseRequest, int], str]


class FakeRecogniser(AsyncDuplexStage[RecogniseRequest, Samples, Transcript]):
    """Hears one text per request, in order of opening, the last one for ever.

    texts: or a function of the request and the samples heard.
    delay_ms: from finish to the final transcript.
    """

    def __init__(
        self, texts: Texts = ("hello",), delay_ms: float = 0.0, clock: Clock | None = None
    ) -> None:
        self._texts = texts
        self._delay_ms = delay_ms
        self._clock = clock or LoopClock()
        self._opened = 0
        self.heard: deque[tuple[RecogniseRequest, int]] = deque(maxlen=REMEMBERED_REQUESTS)
        super().__init__("fake-recogniser", self._hear)

    async def _hear(
        self, request: RecogniseRequest, inputs: AsyncIterator[Samples], ticket: Ticket
    ) -> AsyncIterator[Transcript]:
        number = self._opened
        self._opened += 1
        samples = 0
        async for piece in inputs:
            samples += len(piece)
        self.heard.append((request, samples))
        await sleep_after(self._clock, self._delay_ms)
        if callable(self._texts):
            text = self._texts(request, samples)
        else:
            text = self._texts[min(number, len(self._texts) - 1)]
        if isinstance(text, StageError):
            raise text
        words = _spread(text, samples) if request.wants_words else ()
        yield Transcript(text, is_final=True, words=words)


def _spread(text: str, samples: int) -> tuple[HeardWord, ...]:
    """Words as if each took the same time."""
    words = text.split()
    each_s = samples / HEARING_RATE_HZ / max(1, len(words))
    return tuple(
        HeardWord(word, number * each_s, (number + 1) * each_s) for number, word in enumerate(words)
    )
