"""What is looked at before any stage starts: models, and the room on GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.higgs.parts import TOKENIZER, codec_folder
from pipelines.higgs.room import cache_bytes
from pipelines.placement import GpuShare, check_placement, gpu_memory_bytes
from pipelines.stages.higgs_voices import VoiceFile, problems_of_voices
from pipelines.stages.llm_sglang_arguments import RESERVED_MIB
from pipelines.stages.packages import require_packages
from pipelines.types import StageError
from pipelines.weights import folder_of, resolve_model, weight_bytes
from pipelines.weights.local_store import ModelCorrupt, WeightsError
from pipelines.weights.repository import has_bytes, problem_of_weights
from realtime.stage_settings import FolderChoice, Higgs, SGLang, Stages, WhisperTorch, reads_weights

BYTES_PER_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Inspection:
    """What came of looking into models: a line for each fault, and for each not looked into."""

    problems: tuple[str, ...]
    unseen: tuple[str, ...]


def check_models(stages: Stages) -> None:
    """Models that are folders must be whole. Raises WeightsError with what mends it."""
    for choice in stages.folder_choices:
        _check_model(choice)


def missing_models(stages: Stages) -> list[str]:
    """What stands in the way of the models that are folders, a line for each that is not whole."""
    problems: list[str] = []
    for choice in stages.folder_choices:
        try:
            _check_model(choice)
        except WeightsError as error:
            problems.append(str(error))
    return problems


def look_into_models(stages: Stages) -> Inspection:
    """Reads what models that are whole say of themselves, and the headers of their weights.

    It takes the packages that loading takes, and seconds to import them.
    """
    problems: list[str] = []
    unseen: list[str] = []
    for choice in stages.folder_choices:
        try:
            _check_model(choice)
            problems += _inspect(choice)
        except WeightsError:
            pass  # `missing_models` tells
        except StageError as error:
            problems.append(error.message)
        except ImportError as error:
            unseen.append(
                f"{folder_of(choice.model)} was not looked into: {error.name} cannot be found here"
            )
    return Inspection(tuple(problems), tuple(unseen))


def voice_problems(stages: Stages) -> list[str]:
    """What is wrong with the recordings of voices, a line for each that cannot be used."""
    speaker = stages.speaker
    return problems_of_voices(_voice_files(speaker)) if isinstance(speaker, Higgs) else []


def check_voices(stages: Stages) -> None:
    """Raises StageError that names every recording which cannot be used."""
    problems = voice_problems(stages)
    if problems:
        raise StageError("tts_voice_refused", "\n".join(problems))


def missing_packages(stages: Stages) -> list[str]:
    """What stages lack to be loaded here, a line for each, with what installs it."""
    lines: list[str] = []
    for choice in (stages.recogniser, stages.writer, stages.speaker):
        try:
            require_packages(choice.kind)
        except StageError as error:
            lines.append(error.message)
    return lines


def check_packages(stages: Stages) -> None:
    """Raises StageError that names all that stages lack to be loaded here."""
    lines = missing_packages(stages)
    if lines:
        raise StageError("packages_missing", "\n".join(lines))


def sees_gpus() -> bool:
    """Whether the driver tells of any."""
    try:
        return bool(gpu_memory_bytes())
    except StageError:
        return True


def check_gpus(stages: Stages, memory_bytes: Sequence[int] | None = None) -> None:
    """Raises StageError that names every claim that cannot be met.

    memory_bytes: of each GPU; None: those that are here. They are not looked at where no stage
    needs one.
    """
    shares = list(_shares(stages))
    if not shares:
        return
    check_placement(shares, gpu_memory_bytes() if memory_bytes is None else memory_bytes)


def _check_model(choice: FolderChoice) -> None:
    folder = resolve_model(choice.model, has_weights=reads_weights(choice))
    problem = _problem_of_voice(folder) if isinstance(choice, Higgs) else None
    if problem is not None:
        raise ModelCorrupt(f"The model in {folder} is not whole: {problem}.")


def _inspect(choice: FolderChoice) -> list[str]:
    """Raises StageError, or ImportError of a package that is not here."""
    folder = folder_of(choice.model)
    match choice:
        case Higgs():
            from pipelines.stages.higgs_inspection import inspect_speaker

            return inspect_speaker(folder, _voice_files(choice), choice.positions)
        case WhisperTorch():
            from pipelines.stages.asr_whisper_torch import inspect_recogniser

            inspect_recogniser(folder)
        case SGLang():
            from pipelines.stages.llm_sglang_inspection import inspect_writer

            inspect_writer(folder, has_weights=reads_weights(choice))
    return []


def _voice_files(speaker: Higgs) -> list[VoiceFile]:
    voices = speaker.voices.items()
    return [VoiceFile(name, voice.audio, voice.transcript) for name, voice in voices]


def _problem_of_voice(folder: Path) -> str | None:
    """What a voice lacks that other models do without."""
    if not has_bytes(folder / TOKENIZER):
        return f"{TOKENIZER} is missing or empty"
    codec = codec_folder(folder)
    problem = None if codec is None else problem_of_weights(codec)
    if problem is None:
        return None
    return f"its codec, a repository of its own, belongs into {codec}, but {problem}"


def _shares(stages: Stages) -> Iterator[GpuShare]:
    """needs_bytes: what can be known before anything is loaded."""
    for role, choice in (
        ("recogniser", stages.recogniser),
        ("writer", stages.writer),
        ("speaker", stages.speaker),
    ):
        if not isinstance(choice, FolderChoice) or choice.card is None:
            continue
        yield GpuShare(
            role,
            choice.card,
            choice.memory_share,
            _needs_bytes(choice),
            is_needed=isinstance(choice, SGLang) or choice.device != "auto",
        )


def _needs_bytes(choice: FolderChoice) -> int:
    """The weights, and what the stage takes beside them whatever is asked of it."""
    read_bytes = weight_bytes(choice.model) if reads_weights(choice) else 0
    match choice:
        case WhisperTorch():
            return read_bytes
        case SGLang():
            return read_bytes + RESERVED_MIB * BYTES_PER_MIB
        case Higgs():
            folder, voices = folder_of(choice.model), len(choice.voices)
            codec = codec_folder(folder)
            if codec is not None:
                read_bytes += weight_bytes(str(codec))
            return read_bytes + cache_bytes(folder, choice.slots, choice.positions, voices)
