"""Speech by Higgs Audio v3 TTS: text as it is written, sound before the sentence ends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from pipelines.higgs.assembly import Size, warm_up
from pipelines.higgs.cloning.preambles import ReferencePreambles
from pipelines.higgs.cloning.recording import ReferenceRefused
from pipelines.higgs.config import CODEC_RATE_HZ
from pipelines.higgs.loading import load_voice
from pipelines.higgs.reply.sequence import SequenceTooLong
from pipelines.higgs.rows import Sampling
from pipelines.higgs.text.prompt import Preamble
from pipelines.ports import Progress
from pipelines.runtime.lead import SPEAKER_LEAD
from pipelines.runtime.stepped import SteppedStage
from pipelines.stages.higgs_inspection import refusals
from pipelines.stages.higgs_model import HiggsModel, listener
from pipelines.stages.higgs_voices import VoiceFile, voice_refused, voice_too_long
from pipelines.stages.torch_device import choose_device, claim_device
from pipelines.types import SpeakRequest, SpeechDelta, StageError

MADE_UP_VOICE = "default"  # the one that the model speaks with where it is given none


@dataclass(frozen=True, slots=True)
class HiggsSpeakerOptions:
    """model: the folder of a checkpoint. device: cpu, cuda, or auto: cuda if it is there. gpu,
    memory_share: which one, and of its memory; None: all of it. voices: the first is the default.
    seed: None: another for each reply. temperature and the like: None: the model's own.
    """

    model: Path
    device: str = "cpu"
    gpu: int = 0
    memory_share: float | None = None
    slots: int = 16
    positions: int = 2048
    voices: tuple[VoiceFile, ...] = ()
    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


class HiggsSpeaker(SteppedStage[SpeakRequest, str, SpeechDelta]):
    """A voice that is not known speaks with the default one.

    Voices are copied from a request's sample, and its drawing is obeyed: a request with a seed
    sounds alike each time that the same pieces of text come before they are awaited, on the CPU
    sample for sample, whoever shares a step. `drawing_refused` tells of values that no model takes.
    """

    def __init__(self, options: HiggsSpeakerOptions) -> None:
        self._names = tuple(voice.name for voice in options.voices) or (MADE_UP_VOICE,)
        super().__init__(
            "tts", lambda progress: load_model(options, progress), None, lead=SPEAKER_LEAD
        )

    @property
    def voices(self) -> tuple[str, ...]:
        return self._names


def load_model(options: HiggsSpeakerOptions, progress: Progress) -> HiggsModel:
    """Blocking. Raises StageError that says which file or setting is at fault."""
    place = choose_device(options.device, options.gpu)
    claim_device(place, options.memory_share, "stages.speaker")
    try:
        return _load(options, place, progress)
    except torch.OutOfMemoryError as error:
        raise StageError(
            "tts_failed",
            f"The voice model {options.model} has too little memory on {place} ({error}): "
            "raise stages.speaker.memory_share, or lower stages.speaker.slots "
            f"({options.slots}) or stages.speaker.positions ({options.positions}).",
        ) from error


def _load(options: HiggsSpeakerOptions, place: str, progress: Progress) -> HiggsModel:
    with refusals(options.model):
        voice = load_voice(
            options.model,
            size=Size(options.slots, options.positions, len(options.voices)),
            device=place,
            progress=progress,
        )
    references = listener(voice, str(options.model))
    preambles = {}
    for file in options.voices:
        progress(f"voice: listening to {file.name}")
        preambles[file.name] = _preamble(references, file)
    if not preambles:  # else what the encoder makes at first use would be made beside listeners
        voice.encoder.encode(np.zeros(CODEC_RATE_HZ, np.float32))
    own = voice.member.sampling
    sampling = Sampling(
        own.temperature if options.temperature is None else options.temperature,
        own.top_p if options.top_p is None else options.top_p,
        own.top_k if options.top_k is None else options.top_k,
    )
    preambles = preambles or {MADE_UP_VOICE: voice.preamble()}
    warm_up(voice, preambles.values())
    return HiggsModel(voice, preambles, sampling, options.seed, references)


def _preamble(references: ReferencePreambles, file: VoiceFile) -> Preamble:
    try:
        return references.of(file.request)
    except ReferenceRefused as error:
        raise voice_refused(file, error) from error
    except SequenceTooLong as error:
        raise voice_too_long(file, str(error)) from error
