"""What recognisers with Whisper share: whole turns in pieces, and partial texts on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from pipelines.ports import Progress
from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.one_shot import OneShotStage, Previews
from pipelines.runtime.ticket import Ticket
from pipelines.stages.speech_pauses import quietest, shorten_pauses, split
from pipelines.stages.whisper_evidence import is_hopeless, is_made_up, is_silent, voiced_s
from pipelines.stages.whisper_model import Hearing, WhisperModel
from pipelines.types import HEARING_RATE_HZ, RecogniseRequest, Samples, Transcript, Urgency

DEFAULT_LANGUAGE = "en"  # short answers are too little to tell a language by

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
        ) -> str:
            def pause() -> None:
                ticket.check()
                if cpu is not None:
                    cpu.give_way(ticket)

            audio = np.concatenate(frames) if frames else np.zeros(0, np.float32)
            ears = _Ears(loaded, request.language or language, request.prompt, pause)
            return ears.transcribe(audio)

        def run(
            loaded: WhisperModel, request: RecogniseRequest, frames: list[Samples], ticket: Ticket
        ) -> Iterator[Transcript]:
            yield Transcript(hear(loaded, request, frames, ticket), is_final=True)

        def preview(
            loaded: WhisperModel, request: RecogniseRequest, frames: list[Samples], ticket: Ticket
        ) -> Iterator[Transcript]:
            yield Transcript(hear(loaded, request, frames, ticket), is_final=False)

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


class _Ears:
    """Recognises the audio of one request piece by piece."""

    def __init__(
        self, model: WhisperModel, language: str | None, prompt: str, pause: Callable[[], None]
    ) -> None:
        self._model = model
        self._language = language
        self._prompt = prompt
        self._pause = pause

    def transcribe(self, audio: Samples) -> str:
        texts = [self._piece(piece) for piece in split(shorten_pauses(audio))]
        return " ".join(text for text in texts if text)

    def _piece(self, audio: Samples) -> str:
        if is_silent(audio):
            return ""
        hearing = self._best_hearing(audio)
        if is_made_up(hearing, audio):
            return ""
        if not self._cut_short(hearing, audio):
            return hearing.text
        middle = quietest(audio, len(audio) // 5, len(audio) * 4 // 5)
        halves = [self._piece(half) for half in (audio[:middle], audio[middle:])]
        joined = " ".join(text for text in halves if text)
        return joined if len(joined) > len(hearing.text) else hearing.text

    def _best_hearing(self, audio: Samples) -> Hearing:
        hearings = self._model.hear(audio, self._language, self._prompt, self._pause)
        best = next(hearings)
        if best.doubtful and not is_hopeless(best):
            best = next(hearings, best)
        return best

    def _cut_short(self, hearing: Hearing, audio: Samples) -> bool:
        if hearing.words >= hearing.duration_s * CUT_SHORT_WORDS_PER_S:
            return False
        voice_s = voiced_s(audio)
        return voice_s > CUT_SHORT_AT_LEAST_S and hearing.words < voice_s * CUT_SHORT_WORDS_PER_S
