"""The recogniser: Whisper on CTranslate2, for whole turns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from pipelines.ports import Progress
from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.one_shot import OneShotStage, Previews
from pipelines.runtime.ticket import Ticket
from pipelines.stages.speech_pauses import quietest, shorten_pauses, split
from pipelines.stages.whisper_evidence import is_hopeless, is_made_up, is_silent, voiced_s
from pipelines.stages.whisper_model import Hearing, WhisperModel
from pipelines.types import (
    HEARING_RATE_HZ,
    RecogniseRequest,
    Samples,
    StageError,
    Transcript,
    Urgency,
)
from pipelines.weights import resolve_folder
from pipelines.weights.catalogue import WHISPER_BASE, WHISPER_TINY_EN

MODELS = {"base": WHISPER_BASE, "tiny.en": WHISPER_TINY_EN}
DEFAULT_MODEL = "base"
DEFAULT_LANGUAGE = "en"  # short answers are too little to tell a language by

CURE_ON_GPU = (
    ". It was to run on GPU {gpu}: that needs a CTranslate2 with CUDA, and CUDA's cuBLAS and cuDNN "
    "(`pip install nvidia-cublas-cu12 nvidia-cudnn-cu12`); without them set "
    "stages.recogniser.device to cpu."
)

# A run cannot be broken off, and the final one may have to wait for it: the first partial text is
# that of more than a murmur. Where nobody waits for the words they come seldom; on two cores only
# long turns gain more than they lose.
PARTIAL_EVERY_S = 1.0
PARTIAL_IN_PASSING_EVERY_S = 1.2
PARTIAL_ON_FEW_CORES_EVERY_S = 4.5
FEW_CORES = 3

# Whisper may end at a pause and leave the rest of a long turn out.
CUT_SHORT_WORDS_PER_S = 1.2  # per voiced second; the slowest talkers have 1.6
CUT_SHORT_AT_LEAST_S = 4.0  # of voice; below, a single word may be all


class WhisperRecogniser(OneShotStage[RecogniseRequest, Samples, Transcript]):
    """`pipelines.ports.Recogniser`. The audio is gathered and recognised whole, after finish.

    A request that wants partials gets them as the audio comes, if the CPU is free.

    model: a name of `MODELS`; folder: model.bin, config.json and vocabulary.txt used instead.
    language: for requests that name none; None lets the model decide.
    partials: whether there are any of speech that nobody waits for.
    gpu: the number of a card to run on; None: the CPU. It needs a CTranslate2 built for CUDA.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        folder: Path | None = None,
        *,
        language: str | None = DEFAULT_LANGUAGE,
        cpu: CpuToken | None = None,
        threads: int = 2,
        partials: bool = True,
        gpu: int | None = None,
    ) -> None:
        if model not in MODELS:
            raise ValueError(f"There is no recogniser {model!r}; there are: {', '.join(MODELS)}.")

        def load(progress: Progress) -> WhisperModel:
            found = resolve_folder(MODELS[model], folder)
            progress(f"recogniser: loading {found}")
            try:
                loaded = WhisperModel(found, threads, gpu)
            except (RuntimeError, ValueError) as error:
                cure = "" if gpu is None else CURE_ON_GPU.format(gpu=gpu)
                raise StageError(
                    "asr_failed", f"The recogniser in {found} could not be loaded: {error}{cure}"
                ) from error
            for _ in loaded.hear(np.zeros(HEARING_RATE_HZ, np.float32), DEFAULT_LANGUAGE):
                break
            return loaded

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
                every=partial(_partial_every_samples, in_passing=partials),
            ),
        )


def _partial_every_samples(request: RecogniseRequest, *, in_passing: bool) -> int | None:
    if request.urgency < Urgency.DRAFT:
        every_s = PARTIAL_EVERY_S
    elif (os.cpu_count() or 1) <= FEW_CORES:
        every_s = PARTIAL_ON_FEW_CORES_EVERY_S
    else:
        every_s = PARTIAL_IN_PASSING_EVERY_S
    is_wanted = request.wants_partials and (in_passing or request.urgency < Urgency.DRAFT)
    return int(every_s * HEARING_RATE_HZ) if is_wanted else None


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
        self._pause()
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
        hearings = self._model.hear(audio, self._language, self._prompt)
        best = next(hearings)
        if best.doubtful and not is_hopeless(best):
            self._pause()
            best = next(hearings, best)
        return best

    def _cut_short(self, hearing: Hearing, audio: Samples) -> bool:
        if hearing.words >= hearing.duration_s * CUT_SHORT_WORDS_PER_S:
            return False
        voice_s = voiced_s(audio)
        return voice_s > CUT_SHORT_AT_LEAST_S and hearing.words < voice_s * CUT_SHORT_WORDS_PER_S
