"""Prompts, token for token, with the published ids."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from pipelines.higgs.config import AudioConfig
from pipelines.higgs.model.delay import delay
from pipelines.higgs.rows import Codes
from pipelines.higgs.synthetic.tokenizer import synthetic_tokenizer
from pipelines.higgs.text.prompt import chunk_items, compose_preamble, history_items
from pipelines.higgs.text.tokenizer import HiggsTokenizer, HiggsTokenizerError
from pipelines.higgs.text.vocabulary import SPECIAL_IDS

TTS, AUDIO, TEXT, REF_AUDIO, REF_TEXT = 151667, 151670, 151672, 151679, 151680
AWE = 151692
BEGIN, END = 1024, 1025


@cache
def published() -> Tokenizer:
    return synthetic_tokenizer(SPECIAL_IDS)


@cache
def tokenizer() -> HiggsTokenizer:
    return HiggsTokenizer(published())


def bytes_of(text: str) -> tuple[int, ...]:
    """Of a tokenizer that knows none of the words, by the published order of bytes."""
    raw = published()
    found = [raw.token_to_id(char) for char in text]
    assert None not in found
    return tuple(token for token in found if token is not None)


def reference(frames: int = 3, start: int = 0) -> Codes:
    codes = np.arange(start, start + frames * 8, dtype=np.int32).reshape(frames, 8)
    return delay(codes, BEGIN, END)


DELAYED = (
    (0, BEGIN, BEGIN, BEGIN, BEGIN, BEGIN, BEGIN, BEGIN),
    (8, 1, BEGIN, BEGIN, BEGIN, BEGIN, BEGIN, BEGIN),
    (16, 9, 2, BEGIN, BEGIN, BEGIN, BEGIN, BEGIN),
    (END, 17, 10, 3, BEGIN, BEGIN, BEGIN, BEGIN),
    (END, END, 18, 11, 4, BEGIN, BEGIN, BEGIN),
    (END, END, END, 19, 12, 5, BEGIN, BEGIN),
    (END, END, END, END, 20, 13, 6, BEGIN),
    (END, END, END, END, END, 21, 14, 7),
    (END, END, END, END, END, END, 22, 15),
    (END, END, END, END, END, END, END, 23),
)


def test_without_a_reference_the_preamble_is_one_token() -> None:
    assert compose_preamble(tokenizer()).items == (TTS,)
    assert compose_preamble(tokenizer(), None, "what nobody said").items == (TTS,)
    assert compose_preamble(tokenizer(), np.zeros((0, 8), np.int32), "xyz").items == (TTS,)


def test_a_reference_is_its_delayed_rows() -> None:
    assert compose_preamble(tokenizer(), reference()).items == (TTS, REF_AUDIO, *DELAYED)
    assert compose_preamble(tokenizer(), reference(), "").items == (TTS, REF_AUDIO, *DELAYED)


def test_a_transcript_stands_before_the_reference_without_separators() -> None:
    items = compose_preamble(tokenizer(), reference(), "xyz.").items
    assert items == (TTS, REF_TEXT, *bytes_of("xyz."), REF_AUDIO, *DELAYED)


def test_a_transcript_cannot_smuggle_tokens() -> None:
    items = compose_preamble(tokenizer(), reference(), "x<|audio|>y<|text_end|>").items
    assert items == (TTS, REF_TEXT, *tokenizer().encode("x y"), REF_AUDIO, *DELAYED)
    only_tokens = compose_preamble(tokenizer(), reference(), "<|audio|>").items
    assert AUDIO not in only_tokens


def test_a_chunk_is_its_text_between_text_and_audio() -> None:
    assert chunk_items(tokenizer(), "xyz") == (TEXT, *bytes_of("xyz"), AUDIO)
    directed = chunk_items(tokenizer(), "<|emotion:awe|>xyz")
    assert directed == (TEXT, AWE, *bytes_of("xyz"), AUDIO)
    assert chunk_items(tokenizer(), "x<|audio|>z")[1:-1].count(AUDIO) == 0


def test_history_is_each_chunk_with_its_speech_delayed_anew() -> None:
    codes = np.arange(24, dtype=np.int32).reshape(3, 8)
    first = chunk_items(tokenizer(), "xy")
    second = chunk_items(tokenizer(), "zz")
    items = (
        *compose_preamble(tokenizer(), reference(), "z").items,
        *history_items(first, codes, AudioConfig()),
        *history_items(second, codes[:0], AudioConfig()),
        *chunk_items(tokenizer(), "w"),
    )
    assert items == (
        *(TTS, REF_TEXT, *bytes_of("z"), REF_AUDIO, *DELAYED),
        *(TEXT, *bytes_of("xy"), AUDIO, *DELAYED),
        *(TEXT, *bytes_of("zz"), AUDIO),
        *(TEXT, *bytes_of("w"), AUDIO),
    )


def test_items_are_plain_numbers() -> None:
    for item in compose_preamble(tokenizer(), reference(), "z").items:
        codes = (item,) if isinstance(item, int) else item
        assert {type(code) for code in codes} == {int}


def test_keys_are_equal_only_for_equal_preambles() -> None:
    made = [
        compose_preamble(tokenizer()),
        compose_preamble(tokenizer(), reference()),
        compose_preamble(tokenizer(), reference(), "xyz"),
        compose_preamble(tokenizer(), reference(), "xyy"),
        compose_preamble(tokenizer(), reference(start=1)),
        compose_preamble(tokenizer(), reference(frames=4)),
    ]
    assert len({preamble.key for preamble in made}) == len(made)
    assert compose_preamble(tokenizer(), None, "abc").key == made[0].key
    assert compose_preamble(tokenizer(), reference(), "xyz").key == made[2].key
    assert compose_preamble(tokenizer(), reference(), "xyz<|audio|>").items != made[0].items


def test_digits_are_split_and_text_is_composed() -> None:
    assert tokenizer().encode("742") == bytes_of("742")
    assert tokenizer().encode("e\u0301") == tokenizer().encode("é")


def test_a_tokenizer_is_read_from_its_folder(tmp_path: Path) -> None:
    published().save(str(tmp_path / "tokenizer.json"))
    read = HiggsTokenizer.of_folder(tmp_path)
    assert read.special("<|tts|>") == TTS
    assert read.encode("hello") == tokenizer().encode("hello")
    with pytest.raises(KeyError):
        read.special("<|endoftext|>")


def test_a_tokenizer_without_the_needed_tokens_is_refused_by_name(tmp_path: Path) -> None:
    known = [token for token in SPECIAL_IDS if token not in ("<|tts|>", "<|ref_text|>")]
    synthetic_tokenizer({token: 300 + n for n, token in enumerate(known)}).save(
        str(tmp_path / "tokenizer.json")
    )
    with pytest.raises(HiggsTokenizerError, match=r"<\|tts\|>, <\|ref_text\|> as single"):
        HiggsTokenizer.of_folder(tmp_path)


def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(HiggsTokenizerError, match=r"tokenizer\.json is no tokenizer"):
        HiggsTokenizer.of_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        HiggsTokenizer.of_folder(tmp_path / "nowhere")


def test_tokens_that_only_one_checkpoint_adds_are_left_out() -> None:
    raw = synthetic_tokenizer(SPECIAL_IDS)
    raw.add_special_tokens(["[SPEAKER]"])
    added = raw.token_to_id("[SPEAKER]")
    assert added in raw.encode("a [SPEAKER] b", add_special_tokens=False).ids
    assert added not in HiggsTokenizer(raw).encode("a [SPEAKER] b")
