"""What a checkpoint says of its own shape."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ARCHITECTURE = "HiggsMultimodalQwen3ForConditionalGeneration"

# The published file leaves rope_theta null; transformers' default of 10 000 garbles the speech.
ROPE_THETA = 1_000_000.0

CODEC_RATE_HZ = 24_000
FRAME_SAMPLES = 960  # 40 ms: the codec makes 25 frames a second
FRAMES_PER_S = CODEC_RATE_HZ // FRAME_SAMPLES


class HiggsConfigError(ValueError):
    """The configuration is not of a model that can be run; the message names the field."""


@dataclass(frozen=True, slots=True)
class BackboneConfig:
    """A Qwen3 decoder. Sizes in elements."""

    hidden_size: int
    intermediate_size: int
    layers: int
    query_heads: int
    kv_heads: int
    head_dim: int
    vocabulary_size: int
    norm_epsilon: float = 1e-6
    rope_theta: float = ROPE_THETA


@dataclass(frozen=True, slots=True)
class AudioConfig:
    """The codes of one row. `codebook_size` counts the two that stand for begin and end."""

    codebooks: int = 8
    codebook_size: int = 1026
    is_head_tied: bool = True

    @property
    def begin_code(self) -> int:
        """BOC: fills a row's codebooks whose first frame is still to come."""
        return self.codebook_size - 2

    @property
    def end_code(self) -> int:
        """EOC: in codebook 0 it ends the speech."""
        return self.codebook_size - 1

    @property
    def delay_rows(self) -> int:
        """How many rows more than frames there are."""
        return self.codebooks - 1


@dataclass(frozen=True, slots=True)
class HiggsConfig:
    backbone: BackboneConfig
    audio: AudioConfig

    @classmethod
    def of_folder(cls, folder: Path) -> HiggsConfig:
        """Read `config.json` of a checkpoint. Raises HiggsConfigError, FileNotFoundError."""
        return cls.of(read_config(folder))

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> HiggsConfig:
        """Raises HiggsConfigError, naming the field that is missing or cannot be served."""
        architectures = content.get("architectures") or []
        if ARCHITECTURE not in architectures:
            raise HiggsConfigError(f"architectures is {architectures!r}, not [{ARCHITECTURE!r}]")
        text = section(content, "text_config")
        audio = section(content, "audio_encoder_config")
        hidden_size = count(text, "text_config", "hidden_size")
        backbone = BackboneConfig(
            hidden_size=hidden_size,
            intermediate_size=count(text, "text_config", "intermediate_size"),
            layers=count(text, "text_config", "num_hidden_layers"),
            query_heads=count(text, "text_config", "num_attention_heads"),
            kv_heads=count(text, "text_config", "num_key_value_heads"),
            head_dim=count(text, "text_config", "head_dim"),
            vocabulary_size=count(text, "text_config", "vocab_size"),
            norm_epsilon=number(text, "text_config", "rms_norm_eps", 1e-6),
            rope_theta=number(text, "text_config", "rope_theta", ROPE_THETA),
        )
        if backbone.query_heads % backbone.kv_heads:
            raise HiggsConfigError(
                f"text_config: {backbone.query_heads} query heads cannot share "
                f"{backbone.kv_heads} key-value heads"
            )
        return cls(backbone, _audio(audio, hidden_size))


def read_config(folder: Path) -> dict[str, Any]:
    """The `config.json` of a checkpoint. Raises HiggsConfigError, FileNotFoundError."""
    path = folder / "config.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise HiggsConfigError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise HiggsConfigError(f"{path} holds no object")
    return content


def _audio(audio: Mapping[str, Any], hidden_size: int) -> AudioConfig:
    encoder = audio.get("encoder_type", "discrete")
    if encoder != "discrete":
        raise HiggsConfigError(f"audio_encoder_config.encoder_type is {encoder!r}, not 'discrete'")
    if audio.get("use_delay_pattern", True) is not True:
        raise HiggsConfigError("audio_encoder_config.use_delay_pattern must be true")
    out_dim = audio.get("out_dim") or hidden_size
    if out_dim != hidden_size:
        raise HiggsConfigError(
            f"audio_encoder_config.out_dim is {out_dim}, text_config.hidden_size {hidden_size}"
        )
    codebooks = count(audio, "audio_encoder_config", "num_codebooks")
    if codebooks < 4:
        # A step is launched before the last one's codes are read: the end must be known in time.
        raise HiggsConfigError(f"audio_encoder_config.num_codebooks is {codebooks}, not 4 or more")
    return AudioConfig(
        codebooks=codebooks,
        codebook_size=count(audio, "audio_encoder_config", "vocab_size"),
        is_head_tied=bool(audio.get("tie_word_embeddings", True)),
    )


def section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object within the configuration. Raises HiggsConfigError."""
    found = content.get(name)
    if not isinstance(found, Mapping):
        raise HiggsConfigError(f"{name} is missing")
    return found


def number(section: Mapping[str, Any], name: str, field: str, default: float) -> float:
    """A value above zero in the object called `name`; may be left out. Raises HiggsConfigError."""
    value = section.get(field)
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise HiggsConfigError(f"{name}.{field} is {value!r}, not a number above zero")
    return float(value)


def count(section: Mapping[str, Any], name: str, field: str) -> int:
    """A size in the object called `name`. Raises HiggsConfigError."""
    value = section.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise HiggsConfigError(f"{name}.{field} is {value!r}, not a positive whole number")
    return value
