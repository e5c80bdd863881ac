"""The pinned CTranslate2 weights as a checkpoint of `transformers`, so that two engines can run one
model. The format: ctranslate2/specs/model_spec.py, version 6."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

from pipelines.stages.whisper_vocabulary import END

DTYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)  # by number in the file
WIDTH_OF_HEAD = 64  # in every Whisper
Arrays = dict[str, np.ndarray]


def convert(source: Path, target: Path) -> Path:
    """The same numbers: the file holds half precision, and so does the checkpoint."""
    arrays = read_arrays(source / "model.bin")
    content = json.loads((source / "config.json").read_text(encoding="utf-8"))
    lines = (source / "vocabulary.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    state = transformers_state(arrays)
    tokens, width = state["model.decoder.embed_tokens.weight"].shape
    layers = {side: 1 + max_layer(arrays, side) for side in ("encoder", "decoder")}
    config = WhisperConfig(
        vocab_size=tokens,
        num_mel_bins=state["model.encoder.conv1.weight"].shape[1],
        d_model=width,
        encoder_layers=layers["encoder"],
        decoder_layers=layers["decoder"],
        encoder_attention_heads=width // WIDTH_OF_HEAD,
        decoder_attention_heads=width // WIDTH_OF_HEAD,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        pad_token_id=lines.index(END),
        bos_token_id=lines.index(END),
        eos_token_id=lines.index(END),
    )
    network = WhisperForConditionalGeneration(config)
    missing, unexpected = network.load_state_dict(state, strict=False)
    assert missing == ["proj_out.weight"] and not unexpected, (missing, unexpected)  # tied
    network.half().save_pretrained(target)
    generation = {
        "suppress_tokens": content["suppress_ids"],
        "begin_suppress_tokens": content["suppress_ids_begin"],
        "alignment_heads": content["alignment_heads"],
    }
    (target / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    numbers = {token: number for number, token in enumerate(lines[:tokens])}
    end = numbers[END]
    text = {token: number for token, number in numbers.items() if number < end}
    markers = {token: number for token, number in numbers.items() if number >= end}
    (target / "vocab.json").write_text(json.dumps(text), encoding="utf-8")
    (target / "added_tokens.json").write_text(json.dumps(markers), encoding="utf-8")
    return target


def read_arrays(path: Path) -> Arrays:
    """Every variable of a model.bin by name."""
    content = path.read_bytes()
    at = 0

    def number(form: str) -> int:
        nonlocal at
        [value] = struct.unpack_from(f"<{form}", content, at)
        at += struct.calcsize(f"<{form}")
        return value

    def text() -> str:
        nonlocal at
        length = number("H")
        at += length
        return content[at - length : at - 1].decode()

    assert number("I") == 6
    assert text() == "WhisperSpec"
    number("I")  # of the spec
    arrays: Arrays = {}
    for _ in range(number("I")):
        name = text()
        shape = [number("I") for _ in range(number("B"))]
        dtype = DTYPES[number("B")]
        size_bytes = number("I")
        values = np.frombuffer(content, dtype, size_bytes // np.dtype(dtype).itemsize, at)
        arrays[name] = values.reshape(shape)
        at += size_bytes
    for _ in range(number("I")):
        alias = text()
        arrays[alias] = arrays[text()]
    return arrays


def transformers_state(arrays: Arrays) -> dict[str, torch.Tensor]:
    state: Arrays = {}

    def put(target: str, source: str, part: slice = slice(None), bias: bool = True) -> None:
        state[f"{target}.weight"] = arrays[f"{source}/weight"][part]
        if bias:
            state[f"{target}.bias"] = arrays[f"{source}/bias"][part]

    def norm(target: str, source: str) -> None:
        state[f"{target}.weight"] = arrays[f"{source}/gamma"]
        state[f"{target}.bias"] = arrays[f"{source}/beta"]

    def attention(target: str, source: str, names: tuple[tuple[str, ...], ...]) -> None:
        """names: what is joined in each linear layer."""
        for number, joined in enumerate(names):
            linear = f"{source}/linear_{number}"
            rows = len(arrays[f"{linear}/weight"]) // len(joined)
            for position, name in enumerate(joined):
                part = slice(position * rows, (position + 1) * rows)
                put(f"{target}.{name}_proj", linear, part, bias=name != "k")

    own = (("q", "k", "v"), ("out",))
    heard = (("q",), ("k", "v"), ("out",))
    for side in ("encoder", "decoder"):
        for number in range(max_layer(arrays, side) + 1):
            target, source = f"model.{side}.layers.{number}", f"{side}/layer_{number}"
            norm(f"{target}.self_attn_layer_norm", f"{source}/self_attention/layer_norm")
            attention(f"{target}.self_attn", f"{source}/self_attention", own)
            if side == "decoder":
                norm(f"{target}.encoder_attn_layer_norm", f"{source}/attention/layer_norm")
                attention(f"{target}.encoder_attn", f"{source}/attention", heard)
            norm(f"{target}.final_layer_norm", f"{source}/ffn/layer_norm")
            put(f"{target}.fc1", f"{source}/ffn/linear_0")
            put(f"{target}.fc2", f"{source}/ffn/linear_1")
        norm(f"model.{side}.layer_norm", f"{side}/layer_norm")
        positions = arrays[f"{side}/position_encodings/encodings"]
        state[f"model.{side}.embed_positions.weight"] = positions
    state["model.decoder.embed_tokens.weight"] = arrays["decoder/embeddings/weight"]
    for name in ("conv1", "conv2"):
        put(f"model.encoder.{name}", f"encoder/{name}")
    return {name: torch.tensor(np.asarray(value, np.float32)) for name, value in state.items()}


def max_layer(arrays: Arrays, side: str) -> int:
    prefix = f"{side}/layer_"
    numbers = {
        name.removeprefix(prefix).split("/")[0] for name in arrays if name.startswith(prefix)
    }
    return max(int(number) for number in numbers if number.isdecimal())
