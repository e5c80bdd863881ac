"""A Whisper checkpoint as `transformers` writes it: a folder, looked at before it is believed."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import WhisperConfig, WhisperForConditionalGeneration

from pipelines.higgs.checkpoint.shards import CheckpointError, Shards
from pipelines.stages.whisper_vocabulary import Vocabulary, VocabularyError

CONFIG = "config.json"
GENERATION = "generation_config.json"
NEEDED = ("startoftranscript", "transcribe", "notimestamps")
INNER = "model."  # the network without its last layer
MULTILINGUAL_TOKENS = 51_865  # what has fewer knows English alone


class WhisperCheckpointError(ValueError):
    """A folder that is no whole Whisper checkpoint; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class WhisperCheckpoint:
    """suppressed: tokens that are never written; suppressed_first: nor as the first one.

    following: (layer, head) of the cross-attention that follows the speech.
    """

    network: WhisperForConditionalGeneration
    vocabulary: Vocabulary
    is_multilingual: bool
    suppressed: tuple[int, ...]
    suppressed_first: tuple[int, ...]
    following: tuple[tuple[int, int], ...]


def load_checkpoint(folder: Path, device: str, dtype: torch.dtype) -> WhisperCheckpoint:
    """Blocking. Raises WhisperCheckpointError, FileNotFoundError; RuntimeError without memory."""
    config = _config(folder)
    generation = _generation(folder)
    vocabulary = _vocabulary(folder)
    network: Any = _network(folder, dtype)
    tokens = int(network.config.vocab_size)
    return WhisperCheckpoint(
        network=network.to(device).eval(),
        vocabulary=vocabulary,
        is_multilingual=bool(generation.get("is_multilingual", tokens >= MULTILINGUAL_TOKENS)),
        suppressed=_tokens("suppress_tokens", tokens, generation, config),
        suppressed_first=_tokens("begin_suppress_tokens", tokens, generation, config),
        following=_following(generation, network.config),
    )


def inspect_checkpoint(folder: Path) -> None:
    """What can be known before a weight is read. Raises as `load_checkpoint` does."""
    config = _config(folder)
    _generation(folder)
    vocabulary = _vocabulary(folder)
    try:
        with torch.device("meta"):
            network = WhisperForConditionalGeneration(WhisperConfig.from_dict(config))
    except Exception as error:  # the library raises nothing narrower
        raise WhisperCheckpointError(f"{CONFIG} cannot be used: {error}") from error
    if vocabulary.end >= network.config.vocab_size:
        raise WhisperCheckpointError(
            f"its tokenizer has {vocabulary.end} tokens of text, its weights "
            f"{network.config.vocab_size} tokens"
        )
    try:
        shards = Shards.of_folder(folder)
        headers = shards.headers(shards.names)
    except CheckpointError as error:
        raise WhisperCheckpointError(f"its weights cannot be loaded: {error}") from error
    # The last layer is the embedding once more, and files may leave out the outermost name.
    found = {name.removeprefix(INNER): header.shape for name, header in headers.items()}
    lacking = [
        INNER + name
        for name, place in network.model.named_parameters()
        if found.get(name) != tuple(place.shape)
    ]
    if lacking:
        raise WhisperCheckpointError(_lacks(lacking))


def _config(folder: Path) -> dict[str, Any]:
    config = _read(folder / CONFIG)
    if (kind := config.get("model_type")) != "whisper":
        raise WhisperCheckpointError(f"{CONFIG} describes a model of type {kind!r}, not 'whisper'")
    return config


def _generation(folder: Path) -> dict[str, Any]:
    return _read(folder / GENERATION) if (folder / GENERATION).is_file() else {}


def _network(folder: Path, dtype: torch.dtype) -> WhisperForConditionalGeneration:
    load: Any = WhisperForConditionalGeneration.from_pretrained
    try:
        network, told = load(
            folder,
            dtype=dtype,
            local_files_only=True,
            use_safetensors=True,
            output_loading_info=True,
        )
    except (OSError, KeyError, TypeError, ValueError, SafetensorError) as error:
        raise WhisperCheckpointError(f"its weights cannot be loaded: {error}") from error
    # What is missing would be made up.
    missing = sorted({*told["missing_keys"], *(str(key) for key in told["mismatched_keys"])})
    if missing:
        raise WhisperCheckpointError(_lacks(missing))
    return network


def _lacks(missing: list[str]) -> str:
    more = "" if len(missing) == 1 else f" and {len(missing) - 1} more"
    return f"its weights lack {missing[0]}{more}, or have it in another shape"


def _vocabulary(folder: Path) -> Vocabulary:
    try:
        vocabulary = Vocabulary.of_checkpoint(folder)
    except FileNotFoundError as error:
        raise WhisperCheckpointError(
            "it has neither tokenizer.json nor vocab.json: copy those of the model that it is made "
            "from beside its weights"
        ) from error
    except VocabularyError as error:
        raise WhisperCheckpointError(f"its tokenizer is not that of a Whisper: {error}") from error
    missing = [name for name in NEEDED if vocabulary.special(name) is None]
    if missing:
        raise WhisperCheckpointError(f"its tokenizer has no {', '.join(missing)}")
    return vocabulary


def _tokens(name: str, tokens: int, *contents: dict[str, Any]) -> tuple[int, ...]:
    """A list of tokens from the first of the files that has it; lists may be null."""
    listed: Any = next((content[name] for content in contents if content.get(name)), [])
    return tuple(number for number in listed if 0 <= number < tokens)


def _following(generation: dict[str, Any], config: Any) -> tuple[tuple[int, int], ...]:
    """As the file names them; else, as the originals do, all of the later half of the layers."""
    layers, heads = int(config.decoder_layers), int(config.decoder_attention_heads)
    later = tuple(itertools.product(range(layers // 2, layers), range(heads)))
    known = set(itertools.product(range(layers), range(heads)))
    named = generation.get("alignment_heads") or []
    try:
        listed = tuple((int(layer), int(head)) for layer, head in named)
    except (TypeError, ValueError):
        return later
    return tuple(dict.fromkeys(pair for pair in listed if pair in known)) or later


def _read(path: Path) -> dict[str, Any]:
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise WhisperCheckpointError(f"{path.name} is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise WhisperCheckpointError(f"{path.name} is no JSON object")
    return content
