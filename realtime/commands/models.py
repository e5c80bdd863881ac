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
from pipelines.weights.local_store import state_of
from pipelines.weights.repository import KNOWN, problem_of
from realtime.commands.errors import FAILED, OK, USAGE, CommandError
from realtime.commands.gpus import note_gpus
from realtime.settings import Settings
from realtime.stage_settings import Llama, Piper, Silero, SmartTurn, Whisper, reads_weights

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
    """Fetch what a configuration needs and the store lacks; silent if nothing.

    Models for a GPU are fetched where there is none too: the store may be that of other machines.
    One that cannot be fetched does not keep the others from being fetched, or from being named.
    """
    missing = missing_files(settings)
    repositories = _lacking_repositories(settings)
    if repositories:
        note_gpus(settings)
    problems: list[str] = []
    try:
        if missing:
            fetch_files(missing, _print_line)
            print(f"{len(missing)} files fetched into {store()}", flush=True)
    except FetchFailed as error:
        problems.append(str(error))
    for repository, has_weights in repositories.items():
        try:
            fetch_repository(repository, _print_line, has_weights=has_weights)
        except FetchFailed as error:
            problems.append(str(error))
    if problems:
        raise CommandError("\n".join(problems))
    return OK


def verify_models(group: str | None) -> int:
    """Hash every file of one group, or of all groups and folders of which something is there.

    A store without any model is not in order: CommandError names what fills it.
    """
    rows = status()
    present = {row.group for row in rows if row.state is not FileState.MISSING}
    folders = [repository for repository in KNOWN.values() if repository.folder.is_dir()]
    if group is None and not present and not folders:
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
    absent = 0
    if group is None:
        problems += [
            f"The model {repository.name} in {repository.folder} is not as it should be: {problem}"
            for repository in folders
            if (problem := problem_of(repository.folder, hashes=True)) is not None
        ]
        absent = sum(row.state is FileState.MISSING and row.group not in present for row in rows)
        absent += len(KNOWN) - len(folders)
    for problem in problems:
        print(problem)
    if not problems:
        there = "that is there " if absent else ""
        print(f"every file {there}is as it should be")
    if absent:
        print(f"{absent} of those that are known are not there: `parley models list` names them")
    return FAILED if problems else OK


def missing_files(settings: Settings) -> list[ModelFile]:
    """The pinned files that a configuration needs and that the store has not, or has damaged."""
    return [file for file in _needed_files(settings) if state_of(file) is not FileState.PRESENT]


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


def _lacking_repositories(settings: Settings) -> dict[Repository, bool]:
    """Those that are configured by name and not whole, and whether their weights are needed.

    A path is its owner's affair.
    """
    needed: dict[Repository, bool] = {}
    for choice in settings.stages.folder_choices:
        repository = repository_of(choice.model)
        if repository is not None:
            needed[repository] = needed.get(repository, False) or reads_weights(choice)
    return {
        repository: has_weights
        for repository, has_weights in needed.items()
        if _state_of(repository, has_weights=has_weights) is not FileState.PRESENT
    }


def _state_of(repository: Repository, *, has_weights: bool = True) -> FileState:
    if not repository.folder.is_dir():
        return FileState.MISSING
    problem = problem_of(repository.folder, weights=has_weights)
    return FileState.CORRUPT if problem else FileState.PRESENT


def _print_line(line: str) -> None:
    print(line, flush=True)
