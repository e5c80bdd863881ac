"""A language model's folder, looked at without its weights: what the engine would refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from pipelines.higgs.checkpoint.shards import Shards
from pipelines.higgs.member import MEMBERS
from pipelines.types import StageError
from pipelines.weights import cure_of_folder

SETTING = "stages.writer.model"
CONFIG = "config.json"
TOKENIZER = "tokenizer.json"  # others are read by the engine alone
WRITES_NOTHING = {"WhisperForConditionalGeneration"}.union(*(m.architectures for m in MEMBERS))


def inspect_writer(folder: Path, *, has_weights: bool) -> None:
    """has_weights: whether they are read, and not made up. Raises StageError."""
    try:
        _check_config(folder / CONFIG)
        if (folder / TOKENIZER).is_file():
            _check_tokenizer(folder / TOKENIZER)
        if has_weights:
            shards = Shards.of_folder(folder)
            shards.headers(shards.names)
    except (ValueError, OSError) as error:
        raise StageError(
            "llm_model_refused",
            f"The language model {folder}: {error}; {cure_of_folder(folder, SETTING)}.",
        ) from error


def _check_config(path: Path) -> None:
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    named = content.get("architectures") if isinstance(content, dict) else None
    if not isinstance(named, list) or not named:
        raise ValueError(f"{path} names no architecture")
    if any(name in WRITES_NOTHING for name in named):
        raise ValueError(f"{path} describes {named[0]}, which is no language model")


def _check_tokenizer(path: Path) -> None:
    try:
        Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"{path} is no tokenizer: {error}") from error
