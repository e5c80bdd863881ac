"""Synthetic models: files like the published ones, and codes that behave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.member import V3
from pipelines.higgs.model.decoder import TorchDecoder
from pipelines.higgs.rows import Codes, Row, RowBatch
from pipelines.higgs.synthetic.models import (
    full_config,
    random_parameters,
    tiny_config,
    write_checkpoint,
)
from pipelines.higgs.synthetic.tokenizer import special_ids, synthetic_tokenizer
from pipelines.higgs.text.tokenizer import HiggsTokenizer
from pipelines.higgs.text.vocabulary import SPECIAL_IDS

CONFIG = HiggsConfig.of(tiny_config())
STREAMS = 12
ROWS = 200


def _speak(typical_rows: int | None, seed: int) -> Codes:
    """[ROWS, STREAMS, codebooks] of streams with texts and seeds of their own."""
    parameters = random_parameters(CONFIG, "cpu", torch.float32, seed, typical_rows=typical_rows)
    decoder = TorchDecoder(
        CONFIG,
        parameters,
        slots=STREAMS,
        positions=ROWS + 12,
        row_limit=12 * STREAMS,
        device="cpu",
        is_rowwise=False,
    )
    tokens = np.random.default_rng(seed).integers(0, 400, (STREAMS, 12))
    rows = [
        Row(slot, place, int(tokens[slot, place]), ramp=0 if place == 11 else -1, seed=slot)
        for slot in range(STREAMS)
        for place in range(12)
    ]
    drawn: list[Codes] = []
    for number in range(1, ROWS + 1):
        decoder.launch(RowBatch.of(rows, 8))
        codes = decoder.collect()
        assert codes is not None
        drawn.append(codes[-STREAMS:] if number > 1 else codes[11::12])
        rows = [
            Row(slot, 11 + number, ramp=number, seed=slot, draw=number) for slot in range(STREAMS)
        ]
    return np.stack(drawn)


def test_without_a_typical_length_nothing_ends() -> None:
    codes = _speak(None, seed=0)
    assert (codes[8:] < CONFIG.audio.begin_code).all()


@pytest.mark.parametrize("typical_rows", [20, 60])
def test_speech_has_about_the_length_that_was_asked_for(typical_rows: int) -> None:
    """Within a factor of three: how often EOC wins is estimated, not counted."""
    stop = V3.stop_rule(CONFIG.audio)
    spoken: list[int] = []
    ended = 0
    for seed in range(3):
        codes = _speak(typical_rows, seed)
        for stream in range(STREAMS):
            counts = (stop.frame_count(row, codes[row, stream].tolist()) for row in range(ROWS))
            frames = next((count for count in counts if count is not None), None)
            spoken.append(ROWS if frames is None else frames)
            ended += frames is not None
    mean_rows = sum(spoken) / ended  # of a constant hazard, where some were cut off
    assert typical_rows / 3 < mean_rows < typical_rows * 3


def test_codes_vary_from_row_to_row() -> None:
    codes = _speak(None, seed=1)[8:]
    assert (codes[1:] == codes[:-1]).mean() < 0.3
    assert all(len(np.unique(codes[..., codebook])) > 16 for codebook in range(8))


def test_a_seed_makes_the_same_weights_and_another_one_others() -> None:
    first, again, other = (
        random_parameters(CONFIG, "cpu", torch.float32, seed) for seed in (1, 1, 2)
    )
    assert torch.equal(first.layers[0].qkv, again.layers[0].qkv)
    assert not torch.equal(first.layers[0].qkv, other.layers[0].qkv)
    assert not torch.equal(first.layers[0].qkv, first.layers[1].qkv)


@pytest.mark.parametrize("content", [tiny_config(), full_config()])
def test_the_configuration_leaves_the_base_of_rope_open(content: dict[str, Any]) -> None:
    assert content["text_config"]["rope_theta"] is None
    assert HiggsConfig.of(content).backbone.rope_theta == 1_000_000.0


def test_the_files_are_those_of_a_checkpoint(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, tiny_config(), seed=1, typical_rows=40)
    assert {path.name for path in tmp_path.iterdir()} == {
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "tokenizer.json",
    }
    assert json.loads((tmp_path / "config.json").read_text()) == tiny_config()
    tokenizer = HiggsTokenizer.of_folder(tmp_path)
    assert tokenizer.special("<|tts|>") == special_ids(400)["<|tts|>"]
    assert max(tokenizer.encode("Grüße, 漢字!")) < 256


def test_a_tiny_tokenizer_spells_and_knows_the_special_tokens() -> None:
    tokenizer = synthetic_tokenizer(special_ids(400))
    assert tokenizer.get_vocab_size() == 256 + len(SPECIAL_IDS)
    encoded = tokenizer.encode("<|tts|>Hi<|audio|>", add_special_tokens=False)
    assert [tokenizer.id_to_token(token) for token in encoded.ids] == [
        "<|tts|>",
        "H",
        "i",
        "<|audio|>",
    ]
    assert tokenizer.decode(tokenizer.encode("Grüße, 漢字 123!").ids) == "Grüße, 漢字 123!"


@pytest.fixture(scope="module")
def full_tokenizer() -> Tokenizer:
    return synthetic_tokenizer(special_ids(151_936))


def test_a_full_tokenizer_has_the_published_ids(full_tokenizer: Tokenizer) -> None:
    assert full_tokenizer.get_vocab_size() == 151_727
    for token, number in SPECIAL_IDS.items():
        assert full_tokenizer.encode(token, add_special_tokens=False).ids == [number]


def test_a_full_tokenizer_makes_common_words_one_token(full_tokenizer: Tokenizer) -> None:
    assert len(full_tokenizer.encode(" the people come from that country").ids) == 6
    text = "The people of 1999, naïve."
    assert full_tokenizer.decode(full_tokenizer.encode(text).ids) == text


def test_digits_stand_alone(full_tokenizer: Tokenizer) -> None:
    assert len(full_tokenizer.encode("2048").ids) == 4


def test_a_vocabulary_too_small_for_the_special_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="339 tokens, but .* are 340"):
        special_ids(339)
