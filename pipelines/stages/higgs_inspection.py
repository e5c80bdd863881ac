"""A Higgs speaker's model and voices, looked at without weights: what its start would refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipelines.higgs.checkpoint.shards import CheckpointError
from pipelines.higgs.cloning.recording import ReferenceRefused
from pipelines.higgs.codec.weights import CodecWeightsError
from pipelines.higgs.config import HiggsConfigError
from pipelines.higgs.inspection import InspectedVoice, inspect
from pipelines.higgs.reply.sequence import SequenceTooLong, check_preamble
from pipelines.higgs.text.tokenizer import HiggsTokenizerError
from pipelines.stages.higgs_voices import VoiceFile, listen, voice_refused, voice_too_long
from pipelines.types import StageError
from pipelines.weights import cure_of_folder

SETTING = "stages.speaker.model"


@contextmanager
def refusals(folder: Path) -> Iterator[None]:
    """What is wrong with a model's folder, as StageError with what mends it."""
    try:
        yield
    except (HiggsConfigError, CheckpointError, CodecWeightsError, HiggsTokenizerError) as error:
        message = f"The voice model {folder}: {error}; {cure_of_folder(folder, SETTING)}."
        raise StageError("tts_model_refused", message) from error
    except FileNotFoundError as error:
        raise StageError(
            "tts_model_missing",
            f"The voice model {folder} lacks {error.filename}: {cure_of_folder(folder, SETTING)}.",
        ) from error
    except OSError as error:
        raise StageError(
            "tts_model_refused", f"The voice model {folder} cannot be read: {error}."
        ) from error


def inspect_speaker(folder: Path, voices: Sequence[VoiceFile], positions: int) -> list[str]:
    """What is wrong with the model, or with its voices' room in it; a line for each.

    Recordings that cannot be used are passed over: `higgs_voices.problems_of_voices` tells them.
    """
    try:
        with refusals(folder):
            inspected = inspect(folder)
    except StageError as error:
        return [error.message]
    found = (_problem_of(inspected, file, positions) for file in voices)
    return [problem for problem in found if problem is not None]


def _problem_of(inspected: InspectedVoice, file: VoiceFile, positions: int) -> str | None:
    try:
        sound = listen(file)
    except StageError:
        return None
    try:
        check_preamble(inspected.preamble_rows(len(sound), file.transcript), positions)
    except ReferenceRefused as error:
        return voice_refused(file, error).message
    except SequenceTooLong as error:
        return voice_too_long(file, str(error)).message
    return None
