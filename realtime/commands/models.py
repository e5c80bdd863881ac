"""`parley models`: what lies in the model store, and how it gets there."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.weights import (
    FetchFailed,
    FileState,
    Repository,
    fetch,
    fetch_files,
    fetch_repository,
    repository_of,
    status,
    store,
    verify,
)
from pipelines.weights.catalogue import (
    GROUPS,
    PIPER_JOE,
    QWEN_HALF_B,
    QWEN_ONE_AND_A_HALF_B,
    SILERO_VAD,
    SMART_TURN,
    SMOLLM2,
    WHISPER_BASE,
    WHISPER_TINY_EN,
    ModelFile,
    group_of,
)
from pipelines.weights.local_store import WeightsError, state_of
from pipelines.weights.repository import KNOWN, problem_of, resolve_model
from realtime.commands.errors import FAILED, OK, USAGE, CommandError
from realtime.settings import Settings
from realtime.stage_settings import (
    Higgs,
    Llama,
    Piper,
    SGLang,
    Silero,
    SmartTurn,
    Whisper,
    WhisperTorch,
)

BYTES_PER_MB = 1_000_000
DEFAULT_GROUP = "embedded"  # what the built-in configuration runs
RECOGNISERS = {"base": WHISPER_BASE, "tiny.en": WHISPER_TINY_EN}
WRITERS = {
    "qwen2.5-coder-0.5b": QWEN_HALF_B,
    "qwen2.5-coder-1.5b": QWEN_ONE_AND_A_HALF_B,
    "smollm2-135m": SMOLLM2,
}


def list_models() -> int:
    """One line per known file."""
    print(f"model store: {store()}")
    for row in status():
        size_mb = row.size_bytes / BYTES_PER_MB
        print(f"{row.group:9} {row.state:8} {size_mb:8.1f} MB  {row.path.relative_to(store())}")
    for repository in KNOWN.values():
        size_mb = (repository.size_bytes or 0) / BYTES_PER_MB
        state = _state_of(repository)
        print(f"{'gpu':9} {state:8} {size_mb:8.1f} MB  {repository.name}")
    return OK


def fetch_models(group: str) -> int:
    """Fetch what a group lacks."""
    try:
        fetch(group, _print_line)
    except ValueError as error:
        raise CommandError(str(error), USAGE) from error
    except FetchFailed as error:
        raise CommandError(str(error)) from error
    return OK


def fetch_models_for(settings: Settings) -> int:
    """Fetch what a configuration needs and the store lacks; silent if nothing."""
    missing = missing_files(settings)
    try:
        if missing:
            fetch_files(missing, _print_line)
            print(f"{len(missing)} files fetched into {store()}", flush=True)
        for repository in _needed_repositories(settings):
            if _state_of(repository) is not FileState.PRESENT:
                fetch_repository(repository, _print_line)
    except FetchFailed as error:
        raise CommandError(str(error)) from error
    return OK


def verify_models(group: str | None) -> int:
    """Hash every file of one group, or of all groups of which something is there.

    A store without any model is not in order: CommandError names what fills it.
    """
    present = {row.group for row in status() if row.state is not FileState.MISSING}
    if group is None and not present:
        raise CommandError(
            f"no model lies in the store {store()}: run `parley models fetch {DEFAULT_GROUP}`"
        )
    try:
        problems = [
            problem
            for name in ([group] if group else [name for name in GROUPS if name in present])
            for problem in verify(name)
        ]
    except ValueError as error:
        raise CommandError(str(error), USAGE) from error
    for problem in problems:
        print(problem)
    if not problems:
        print("every file is as it should be")
    return FAILED if problems else OK


def missing_files(settings: Settings) -> list[ModelFile]:
    """The pinned files that a configuration needs and that the store has not, or has damaged."""
    return [file for file in _needed_files(settings) if state_of(file) is not FileState.PRESENT]


def missing_models(settings: Settings) -> list[str]:
    """What stands in the way of the models that are folders, a line for each that is not whole."""
    problems: list[str] = []
    for choice in _folder_choices(settings):
        has_weights = not isinstance(choice, SGLang) or choice.has_weights
        try:
            resolve_model(choice.model, has_weights=has_weights)
        except WeightsError as error:
            problems.append(str(error))
    return problems


def remedy(files: Sequence[ModelFile]) -> str:
    """The commands that bring these files."""
    groups = sorted({group_of(file) for file in files})
    return " and ".join(f"`parley models fetch {group}`" for group in groups)


def _needed_files(settings: Settings) -> list[ModelFile]:
    files: list[ModelFile] = []
    stages = settings.stages
    for stage in (stages.detector, stages.judge, stages.recogniser, stages.writer, stages.speaker):
        match stage:
            case Silero(path=None):
                files.append(SILERO_VAD)
            case SmartTurn(path=None):
                files.append(SMART_TURN)
            case Whisper(path=None, model=model):
                files.extend(RECOGNISERS[model])
            case Llama(path=None, model=model):
                files.append(WRITERS[model])
            case Piper(path=None):
                files.extend(PIPER_JOE)
            case _:
                pass  # remote, scripted, or with a path of its own
    return files


def _folder_choices(settings: Settings) -> list[WhisperTorch | SGLang | Higgs]:
    stages = settings.stages
    choices = (stages.recogniser, stages.writer, stages.speaker)
    return [choice for choice in choices if isinstance(choice, WhisperTorch | SGLang | Higgs)]


def _needed_repositories(settings: Settings) -> list[Repository]:
    """Those that are configured by name; a path is its owner's affair."""
    found = [repository_of(choice.model) for choice in _folder_choices(settings)]
    return [repository for repository in found if repository is not None]


def _state_of(repository: Repository) -> FileState:
    if not repository.folder.is_dir():
        return FileState.MISSING
    return FileState.CORRUPT if problem_of(repository.folder) else FileState.PRESENT


def _print_line(line: str) -> None:
    print(line, flush=True)
