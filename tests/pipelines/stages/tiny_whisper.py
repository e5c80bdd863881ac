"""A Whisper of random weights with a whole tokenizer, as `transformers` saves it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import WhisperConfig, WhisperForConditionalGeneration

MARKERS = (
    "endoftext",
    "startoftranscript",
    "en",
    "de",
    "translate",
    "transcribe",
    "startoflm",
    "startofprev",
    "nospeech",
    "notimestamps",
    "0.00",
    "0.02",
)
SPOKEN = ["the train leaves every morning", "what is the weather like today", "thank you"]


def save_tiny(folder: Path, *, bands: int = 8, seed: int = 3, **generation: Any) -> Path:
    """generation: more of generation_config.json."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(SPOKEN * 4, trainer)
    end = tokenizer.get_vocab_size()
    tokenizer.add_special_tokens([f"<|{name}|>" for name in MARKERS])
    config = WhisperConfig(
        vocab_size=tokenizer.get_vocab_size(),
        num_mel_bins=bands,
        d_model=32,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        init_std=0.3,  # far from even odds
        pad_token_id=end,
        bos_token_id=end,
        eos_token_id=end,
        decoder_start_token_id=end + 1,
    )
    torch.manual_seed(seed)
    network = WhisperForConditionalGeneration(config).eval()
    network.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    content = {"is_multilingual": True, **generation}
    (folder / "generation_config.json").write_text(json.dumps(content), encoding="utf-8")
    return folder
