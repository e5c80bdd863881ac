"""Models of random weights for a whole conversation: a voice, and a language model beside it.

They have the sizes of the real ones, so that a card shows its true speed and room with them; what
they say are words that nobody knows.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import yaml
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from pipelines.higgs.codec.config import CodecConfig, tiny_codec_config
from pipelines.higgs.codec.weights import random_codec
from pipelines.higgs.synthetic.models import full_config, tiny_config, write_checkpoint

SEED = 1
ROWS_OF_A_SENTENCE = 100  # on average: 4 s of speech, after which the voice model ends it
SHARDS = 4

# A language model of the shape of Qwen3 4B, whose weights the engine makes up.
WRITER_SHAPE: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "max_position_embeddings": 40_960,
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "vocab_size": 151_936,
}
ORDINARY_TOKENS = 151_643  # bytes and words; the marks below follow
SPECIAL_MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
WORD_MARKS = ("<tool_call>", "</tool_call>", "<think>", "</think>")
SYLLABLES = ["".join(pair) for pair in itertools.product("bdfghklmnprstvw", "aeiou")]
SENTENCE_WORDS = 11  # every so manyth word ends a sentence
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_stand_ins(folder: Path, config: Path, *, is_tiny: bool, has_ears: bool = True) -> Path:
    """Write the models that `folder` lacks, and `server.yaml`: `config` with these models.

    is_tiny: a voice that runs on any CPU. Returns the path of server.yaml, with which `parley
    serve` starts too. A recogniser on a GPU becomes a scripted one: random weights hear nothing.
    So does a language model on a GPU where there is none, and without `has_ears` what hears speech
    and its end. Other stages stay as they are.
    """
    whole: dict[str, Any] = yaml.safe_load(config.read_text(encoding="utf-8"))
    stages: dict[str, dict[str, Any]] = whole["stages"]
    if stages["recogniser"]["kind"] == "whisper_torch":
        stages["recogniser"] = {"kind": "scripted"}
    if not has_ears:
        stages["detector"], stages["judge"] = {"kind": "scripted"}, {"kind": "scripted"}
    if stages["speaker"]["kind"] == "higgs":
        voice = folder / ("voice-tiny" if is_tiny else "voice")
        _write_once(voice, lambda place: _write_voice(place, is_tiny))
        stages["speaker"]["model"] = str(voice.resolve())
    if stages["writer"]["kind"] == "sglang" and not torch.cuda.is_available():
        print("no GPU is here: a scripted writer stands in for the language model", flush=True)
        stages["writer"] = {"kind": "scripted"}
    if stages["writer"]["kind"] == "sglang":
        writer = folder / "writer"
        _write_once(writer, write_writer)
        stages["writer"] |= {"model": str(writer.resolve()), "load_format": "dummy"}
    made = folder / "server.yaml"
    made.write_text(yaml.safe_dump(whole), encoding="utf-8")
    return made


def write_writer(folder: Path) -> None:
    """A checkpoint without weights: config.json, a byte-level tokenizer and a chat template."""
    tokenizer = _word_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    ends = [tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")]
    for name, content in (
        ("config.json", {**WRITER_SHAPE, "eos_token_id": ends}),
        ("generation_config.json", {"eos_token_id": ends}),
        (
            "tokenizer_config.json",
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "eos_token": "<|im_end|>",
                "pad_token": "<|endoftext|>",
                "chat_template": CHAT_TEMPLATE,
            },
        ),
    ):
        (folder / name).write_text(json.dumps(content, indent=1), encoding="utf-8")


def _write_voice(folder: Path, is_tiny: bool) -> None:
    codec = tiny_codec_config() if is_tiny else CodecConfig()
    content = (tiny_config() if is_tiny else full_config()) | codec.section()
    write_checkpoint(
        folder,
        content,
        SEED,
        shards=1 if is_tiny else SHARDS,
        device="cuda" if torch.cuda.is_available() else "cpu",
        typical_rows=ROWS_OF_A_SENTENCE,
        codec=random_codec(codec, SEED).state_dict(),
    )


def _write_once(folder: Path, write: Any) -> None:
    """Under another name first: what a run that was ended leaves behind is no model."""
    if folder.exists():
        return
    print(f"writing {folder}", flush=True)
    unfinished = folder.with_name(f"{folder.name}.part")
    unfinished.mkdir(parents=True, exist_ok=True)
    write(unfinished)
    unfinished.rename(folder)


def _word_tokenizer() -> Tokenizer:
    """Texts become bytes; random weights write words."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = itertools.islice(_words(), ORDINARY_TOKENS - len(alphabet))
    vocabulary = {piece: number for number, piece in enumerate([*alphabet, *words])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = split  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.add_special_tokens(
        [AddedToken(mark, special=True, normalized=False) for mark in SPECIAL_MARKS]
    )
    tokenizer.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in WORD_MARKS])
    return tokenizer


def _words() -> Iterator[str]:
    """Words with the space before them, as a byte-level vocabulary spells it."""
    for number, syllables in enumerate(itertools.product(SYLLABLES, repeat=3)):
        word = "".join(syllables)
        yield f"Ġ{word}." if number % SENTENCE_WORDS == 0 else f"Ġ{word}"
