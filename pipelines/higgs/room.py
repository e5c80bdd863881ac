"""How much memory a voice needs beside its weights, told from its `config.json` alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.higgs.config import HiggsConfigError, count, read_config, section
from pipelines.higgs.member import member_of

LEAST_PREFIXES = 4  # references whose caches are kept, beside those of configured voices
ELEMENT_BYTES = 2  # bfloat16
KEY_AND_VALUE = 2  # tensors of a position in each layer


def slot_count(streams: int, voices: int) -> int:
    """Slots of the decoder: for streams and for references."""
    return streams + max(LEAST_PREFIXES, voices)


def cache_bytes(folder: Path, streams: int, positions: int, voices: int) -> int:
    """What the slots' keys and values take on a GPU; 0 where no configuration lies there."""
    try:
        content = read_config(folder)
        member_of(content)
        elements = _position_elements(content)
    except (HiggsConfigError, OSError):
        return 0  # what is wrong with it is said when it is loaded
    return slot_count(streams, voices) * positions * elements * ELEMENT_BYTES


def _position_elements(content: Mapping[str, Any]) -> int:
    """Of all layers. v2 as transformers keeps it has no section for the text model."""
    name = "text_config" if "text_config" in content else "config.json"
    text = section(content, name) if name in content else content
    layers = count(text, name, "num_hidden_layers")
    kv_heads = count(text, name, "num_key_value_heads")
    if text.get("head_dim"):
        head_dim = count(text, name, "head_dim")
    else:
        head_dim = count(text, name, "hidden_size") // count(text, name, "num_attention_heads")
    return KEY_AND_VALUE * layers * kv_heads * head_dim
