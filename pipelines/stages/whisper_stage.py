"""What recognisers with Whisper share: whole turns in pieces, and partial texts on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from pipelines.ports import Progress
from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.one_shot import OneShotStage, Previews
from pipelines.runtime.ticket import Ticket
from pipelines.stages.speech_pauses import Shortened, quietest, split
from pipelines.stages.whisper_evidence import is_hopeless, is_made_up, is_silent, voiced_s
from pipelines.stages.whisper_model import Hearing, WhisperModel
from pipelines.types import (
    ANY_LANGUAGE,
    HEARING_RATE_HZ,
    HeardWord,
    RecogniseRequest,
    Samples,
    StageError,
    Transcript,
    Urgency,
)

DEFAULT_LANGUAGE = "en"  # short answers are too little to tell a language by

TRANSLATES_NOT = (
    "The recogniser of this server knows English alone and cannot translate. Transcribe instead, "
    "or set stages.recogniser.model to a model of many languages, such as base."
)

# A preview is worked on before the final run that comes meanwhile: the first partial text is that
# of more than a murmur. Where nobody waits for the words they come seldom.
PARTIAL_EVERY_S = 1.0
PARTIAL_IN_PASSING_EVERY_S = 1.2

# Whisper may end at a pause and leave the rest of a long turn out.
CUT_SHORT_WORDS_PER_S = 1.2  # per voiced second; the slowest talkers have 1.6
CUT_SHORT_AT_LEAST_S = 4.0  # of voice; below, a single word may be all


class WhisperStage(OneShotStage[RecogniseRequest, Samples, Transcript]):
    """`pipelines.ports.Recogniser`. The audio is gathered and recognised whole, after finish.

    A request that wants partials gets them as the audio comes, if the stage is free.

    load: makes and warms the model. language: for requests that name none; None lets the model
    decide. in_passing_every_s: of audio, between the partials of speech that nobody waits for;
    None: there are none.
    """

    def __init__(
        self,
        load: Callable[[Progress], WhisperModel],
        *,
        language: str | None,
        cpu: CpuToken | None,
        in_passing_every_s: float | None,
    ) -> None:
        def hear(
            loaded: WhisperModel, request: RecogniseRequest, frames: list[Samples], ticket: Ticket
        ) -> _Heard:
            def pause() -> None:
                ticket.check()
                if cpu is not None:
                    cpu.give_way(ticket)

            if request.translates and not loaded.is_multilingual:
                raise StageError("translation_unsupported", TRANSLATES_NOT)
            audio = np.concatenate(frames) if frames else np.zeros(0, np.float32)
            spoken = None if request.language == ANY_LANGUAGE else request.language or language
            return _Ears(loaded, request, spoken, pause).transcribe(audio)

        def run(
            loaded: WhisperModel, request: RecogniseRequest, frames: list[Samples], ticket: Ticket
        ) -> Iterator[Transcript]:
            heard = hear(loaded, request, frames, ticket)
            yield Transcript(heard.text, True, heard.language, heard.words)

        def preview(
            loaded: WhisperModel, request: RecogniseRequest, frames: list[Samples], ticket: Ticket
        ) -> Iterator[Transcript]:
            # Its words may be revised: nobody needs to know when they were said.
            heard = hear(loaded, replace(request, wants_words=False), frames, ticket)
            yield Transcript(heard.text, False, heard.language)

        super().__init__(
            "asr",
            load,
            run,
            cpu,
            gather=True,
            previews=Previews(
                preview,
                weigh=len,
                every=partial(_partial_every_samples, in_passing_every_s=in_passing_every_s),
            ),
        )


def _partial_every_samples(
    request: RecogniseRequest, *, in_passing_every_s: float | None
) -> int | None:
    every_s = PARTIAL_EVERY_S if request.urgency < Urgency.DRAFT else in_passing_every_s
    if every_s is None or not request.wants_partials:
        return None
    return int(every_s * HEARING_RATE_HZ)


@dataclass(frozen=True, slots=True)
class _Heard:
    """words: in seconds from the first sample of the audio that was heard."""

    text: str = ""
    language: str | None = None
    words: tuple[HeardWord, ...] = ()

    def moved(self, by_s: float) -> _Heard:
        words = (HeardWord(w.text, w.start_s + by_s, w.end_s + by_s) for w in self.words)
        return replace(self, words=tuple(words))


def _joined(parts: Sequence[_Heard]) -> _Heard:
    """The language is that of the first part with a text."""
    said = [part for part in parts if part.text]
    return _Heard(
        " ".join(part.text for part in said),
        next((part.language for part in said), None),
        tuple(word for part in said for word in part.words),
    )


class _Ears:
    """Recognises the audio of one request piece by piece."""

    def __init__(
        self,
        model: WhisperModel,
        request: RecogniseRequest,
        language: str | None,
        pause: Callable[[], None],
    ) -> None:
        self._model = model
        self._request = request
        self._language = language
        self._pause = pause

    def transcribe(self, audio: Samples) -> _Heard:
        shortened = Shortened.of(audio)
        heard = self._all(split(shortened.audio))
        words = tuple(
            HeardWord(
                word.text,
                shortened.before_s(word.start_s),
                shortened.before_s(word.end_s, is_end=True),
            )
            for word in heard.words
        )
        return replace(heard, words=words)

    def _all(self, pieces: Sequence[Samples]) -> _Heard:
        """Of neighbours, the first of which begins at zero."""
        parts: list[_Heard] = []
        samples = 0
        for piece in pieces:
            parts.append(self._piece(piece).moved(samples / HEARING_RATE_HZ))
            samples += len(piece)
        return _joined(parts)

    def _piece(self, audio: Samples) -> _Heard:
        if is_silent(audio):
            return _Heard()
        hearing = self._best_hearing(audio)
        if is_made_up(hearing, audio):
            return _Heard()
        if self._cut_short(hearing, audio):
            middle = quietest(audio, len(audio) // 5, len(audio) * 4 // 5)
            halves = self._all([audio[:middle], audio[middle:]])
            if len(halves.text) > len(hearing.text):
                return halves
        words = self._model.place(hearing, audio) if self._request.wants_words else ()
        return _Heard(hearing.text, hearing.language, tuple(words))

    def _best_hearing(self, audio: Samples) -> Hearing:
        hearings = self._model.hear(
            audio,
            self._language,
            self._request.prompt,
            self._pause,
            translates=self._request.translates,
        )
        best = next(hearings)
        if best.doubtful and not is_hopeless(best):
            best = next(hearings, best)
        return best

    def _cut_short(self, hearing: Hearing, audio: Samples) -> bool:
        if hearing.words >= hearing.duration_s * CUT_SHORT_WORDS_PER_S:
            return False
        voice_s = voiced_s(audio)
        return voice_s > CUT_SHORT_AT_LEAST_S and hearing.words < voice_s * CUT_SHORT_WORDS_PER_S
