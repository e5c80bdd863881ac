"""Models that are folders: checkpoints of a model hub, or put into the store by hand.

Such a folder lies at `$PARLEY_MODELS/<owner>/<name>`. Nobody here pins its contents, since a user
may choose any model; it is complete if it has all that its own index names. What was fetched is
listed beside it with sizes and hashes, so that a file that was cut short or changed is seen.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pipelines.weights.local_store import ModelCorrupt, ModelMissing, hash_of, store

LISTING = ".parley-files.json"  # what was fetched: {"commit": ..., "files": {path: [size, sha256]}}
CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
TOKENIZERS = ("tokenizer.json", "vocab.json")  # one of them; the latter is older models' of speech

# Weights, how they are read, and the tokenizer; not the same weights in other formats.
PATTERNS = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")

_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


@dataclass(frozen=True, slots=True)
class Repository:
    """A model of a hub. revision: a commit, tag or branch; size_bytes: about, where it is known."""

    name: str
    revision: str = "main"
    patterns: tuple[str, ...] = PATTERNS
    size_bytes: int | None = None

    @property
    def folder(self) -> Path:
        """Where it lies in the store, whether it is there or not."""
        return store().joinpath(*self.name.split("/"))


HIGGS_V3 = Repository("bosonai/higgs-audio-v3-tts-4b", size_bytes=9_320_000_000)
QWEN3_4B = Repository("Qwen/Qwen3-4B-Instruct-2507", size_bytes=8_060_000_000)
WHISPER_TURBO = Repository("openai/whisper-large-v3-turbo", size_bytes=1_620_000_000)
KNOWN = {repository.name: repository for repository in (HIGGS_V3, QWEN3_4B, WHISPER_TURBO)}


def is_repository_name(model: str) -> bool:
    """Whether a text can be `owner/name`; a path begins with a dot, a slash or a tilde."""
    return _NAME.fullmatch(model) is not None


def repository_of(model: str) -> Repository | None:
    """The repository that a configured model means; None: it is the path of a folder.

    A folder of that name goes before a repository.
    """
    if Path(model).expanduser().is_dir() or not is_repository_name(model):
        return None
    return KNOWN.get(model) or Repository(model)


def folder_of(model: str) -> Path:
    """Where a model lies, given as a path or as `owner/name`, whether it is there or not."""
    repository = repository_of(model)
    return Path(model).expanduser() if repository is None else repository.folder


def resolve_model(model: str, *, has_weights: bool = True) -> Path:
    """The complete folder of a model, given as a path or as `owner/name`; never touches a network.

    has_weights: False for a model whose weights are made up. Raises ModelMissing or ModelCorrupt,
    with what mends it.
    """
    repository = repository_of(model)
    if repository is None:
        folder = Path(model).expanduser()
        if not folder.is_dir():
            raise ModelMissing(f"There is no model folder at {folder}: correct the path.")
        problem = problem_of(folder, weights=has_weights)
        if problem is not None:
            raise ModelCorrupt(f"The model in {folder} is not whole: {problem}.")
        return folder
    if not repository.folder.is_dir():
        raise ModelMissing(f"The model {model} is not in the store. {cure_of(repository)}")
    problem = problem_of(repository.folder, weights=has_weights)
    if problem is not None:
        raise ModelCorrupt(
            f"The model {model} in {repository.folder} is not whole: {problem}. "
            f"{cure_of(repository)}"
        )
    return repository.folder


def problem_of(folder: Path, *, hashes: bool = False, weights: bool = True) -> str | None:
    """What a model's folder lacks; None: it is complete.

    hashes: read every listed file too. weights: whether it must have them.
    """
    if not (folder / CONFIG).is_file():
        return f"{CONFIG} is missing"
    for name, (size_bytes, sha256) in _listed(folder).items():
        problem = file_problem(folder / name, size_bytes, sha256 if hashes else None)
        if problem is not None:
            return f"{name} {problem}"
    if not any(has_bytes(folder / name) for name in TOKENIZERS):
        return f"it has neither {' nor '.join(TOKENIZERS)}, or an empty one"
    return problem_of_weights(folder) if weights else None


def problem_of_weights(folder: Path) -> str | None:
    """What a folder lacks of the weights that it is to have; None: nothing."""
    index = folder / INDEX
    if not index.is_file():
        if not (folder / SINGLE).is_file():
            return f"it has neither {SINGLE} nor {INDEX}"
        return None if has_bytes(folder / SINGLE) else f"{SINGLE} is empty"
    try:
        shards = _shards(index)
    except ValueError as error:
        return f"{INDEX} cannot be read ({error})"
    missing = [name for name in shards if not has_bytes(folder / name)]
    return f"{', '.join(missing)} missing or empty, named by {INDEX}" if missing else None


def file_problem(path: Path, size_bytes: int | None, sha256: str | None) -> str | None:
    """What is wrong with one file; None: nothing that is known of it."""
    if not path.is_file():
        return "is missing"
    found_bytes = path.stat().st_size
    if size_bytes is not None and found_bytes != size_bytes:
        return f"has {found_bytes} bytes instead of {size_bytes}"
    if sha256 is not None and hash_of(path) != sha256:
        return f"is damaged (its sha256 is not {sha256[:12]}...)"
    return None


def weight_bytes(model: str) -> int:
    """How much the weights of a model take; 0 where it is not there."""
    folder = folder_of(model)
    paths = [folder / name for name in weight_files(folder)]
    return sum(path.stat().st_size for path in paths if path.is_file())


def weight_files(folder: Path) -> list[str]:
    """The files that a model is read from, whether they are there or not.

    Repositories may keep the same weights in other precisions beside them.
    """
    index = folder / INDEX
    try:
        return _shards(index) if index.is_file() else [SINGLE]
    except ValueError:
        return []  # `problem_of` says what is wrong with it


def cure_of(repository: Repository) -> str:
    """How a model comes into the store, with a hub and without one."""
    return (
        "Run `parley models fetch --config CONFIG`, which asks a model hub; where none can be "
        f"reached, {by_hand(repository)}"
    )


def cure_of_folder(folder: Path, setting: str) -> str:
    """What mends a model that cannot be loaded; goes on from a colon. setting: that names it."""
    if folder.absolute().is_relative_to(store().absolute()):
        fetch = f"delete {folder} and run `parley models fetch --config CONFIG`"
        return f"{fetch}, or correct {setting}"
    return f"correct {setting}, or put a whole checkpoint there"


def by_hand(repository: Repository) -> str:
    """What to put where; goes on from a comma."""
    size = "" if repository.size_bytes is None else f"; {repository.size_bytes / 1e9:.1f} GB"
    return (
        f"put the files of the repository {repository.name} ({CONFIG}, {SINGLE} or {INDEX} with "
        f"all that it names, and those of the tokenizer{size}) into {repository.folder}, and then "
        "run `parley check CONFIG`."
    )


def write_listing(
    folder: Path, commit: str, files: dict[str, tuple[int | None, str | None]]
) -> None:
    """Note what was fetched; appears whole."""
    content = {"commit": commit, "files": {name: list(file) for name, file in files.items()}}
    partial = folder / f"{LISTING}.partial"
    partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    partial.replace(folder / LISTING)


def _listed(folder: Path) -> dict[str, tuple[int | None, str | None]]:
    try:
        content: Any = json.loads((folder / LISTING).read_text(encoding="utf-8"))
        return {name: (file[0], file[1]) for name, file in content["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return {}  # put there by hand: its own index has to do


def _shards(index: Path) -> list[str]:
    """The files that an index names. Raises ValueError."""
    content: Any = json.loads(index.read_text(encoding="utf-8"))
    weights = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(weights, dict) or not weights:
        raise ValueError("no weight_map")
    names = {str(name) for name in cast("dict[str, object]", weights).values()}
    if any(Path(name).name != name for name in names):
        raise ValueError("it names a file outside its folder")
    return sorted(names)


def has_bytes(path: Path) -> bool:
    """Whether it is a file that holds anything."""
    return path.is_file() and path.stat().st_size > 0
