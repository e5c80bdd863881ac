"""Whatever the text, no special token but a control tag comes of it."""

from __future__ import annotations

import time
import unicodedata
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer

from pipelines.higgs.synthetic.tokenizer import synthetic_tokenizer
from pipelines.higgs.text.tags import scrub, speakable
from pipelines.higgs.text.tokenizer import HiggsTokenizer
from pipelines.higgs.text.vocabulary import CONTROL_TAGS, SPECIAL_IDS, Family

CONTROL_IDS = {tag.id for tag in CONTROL_TAGS.values()}


@cache
def published() -> Tokenizer:
    return synthetic_tokenizer(SPECIAL_IDS)


@cache
def lenient() -> Tokenizer:
    """Specials that are looked for after normalisation, and strip the spaces around them."""
    small = {token: 400 + place for place, token in enumerate(SPECIAL_IDS)}
    tokenizer = synthetic_tokenizer(dict.fromkeys(["<|pad|>"], 400))
    tokenizer.add_tokens(
        [AddedToken(token, normalized=True, lstrip=True, rstrip=True) for token in small]
    )
    return tokenizer


def specials_of(tokenizer: Tokenizer, text: str) -> set[str]:
    encoded = tokenizer.encode(text, add_special_tokens=False)
    added = tokenizer.get_added_tokens_decoder()
    return {added[token].content for token in encoded.ids if token in added}


FRAGMENTS = st.sampled_from(
    [
        *SPECIAL_IDS,
        *(token[:-1] for token in list(SPECIAL_IDS)[20:40]),
        *(token[2:] for token in list(SPECIAL_IDS)[20:40]),
        *("<", "|", ">", "<|", "|>", "<|>", "</", "/>", "＜", "｜", "＞", "≮", "≯", "∣", "¦"),
        *("\u0338", "\u0301", "\u200b", "\u200d", "\ufeff", "\u00ad", "\ud800", "\x00", "\ufe0f"),
        *("audio", "text", "AUDIO", "tts", "emotion:awe", "emotion：awe", "tool_call", "_call>"),
        *(" ", "\n", "a", "K", "。", "，", ":", "hello ", "你好"),
    ]
)
MESS = st.lists(FRAGMENTS, max_size=24).map("".join)


@given(MESS | st.text(max_size=60))
@settings(max_examples=600, deadline=None)
@example("<|<|audio|>|>")
@example("<|aud<|text|>io|>")
@example("<|audio|\u200b>")
@example("<|emotion:awe|>\u0338<|audio|>")
@example("<tool<tool_call>_call>")
def test_no_text_becomes_a_special_token_but_a_control_tag(text: str) -> None:
    clean = scrub(text)
    for tokenizer in (published(), lenient()):
        assert specials_of(tokenizer, clean) <= set(CONTROL_TAGS)
        # Nor if another tokenizer took the look-alikes for what they look like.
        folded = unicodedata.normalize("NFKC", clean).lower()
        assert specials_of(tokenizer, folded) <= set(CONTROL_TAGS)
    assert scrub(clean) == clean
    bare = clean
    for tag in CONTROL_TAGS:
        bare = bare.replace(tag, "")
    assert not set(bare) & set("<|>")


@given(MESS)
@settings(max_examples=200, deadline=None)
def test_the_tokenizer_guards_itself(text: str) -> None:
    tokenizer = HiggsTokenizer(published())
    first = min(SPECIAL_IDS.values())
    assert all(token < first or token in CONTROL_IDS for token in tokenizer.encode(text))


def test_every_documented_tag_passes_and_becomes_its_published_id() -> None:
    assert len(CONTROL_TAGS) == 43
    families = [tag.family for tag in CONTROL_TAGS.values()]
    assert [families.count(family) for family in Family] == [21, 3, 9, 10]
    tokenizer = HiggsTokenizer(published())
    for text, tag in CONTROL_TAGS.items():
        assert tokenizer.encode(f"{text}Hello")[0] == tag.id == SPECIAL_IDS[text]


@pytest.mark.parametrize("special", [t for t in SPECIAL_IDS if t not in CONTROL_TAGS])
def test_every_other_special_is_struck_out(special: str) -> None:
    assert scrub(f"Hello {special} there") == "Hello there"
    assert scrub(f"Hello{special}there") == "Hello there"


@pytest.mark.parametrize(
    "token",
    [
        "<|no_such_thing|>",
        "<|emotion:joy|>",
        "<|Emotion:Awe|>",
        "<| emotion:awe |>",
        "< |audio| >",
        "<|emotion：awe|>",
        "＜｜audio｜＞",
        "<｜end▁of▁sentence｜>",
        "<|<|audio|>|>",
        "<|<|<|a|>b|>c|>",
        "<|audio",
        "audio|>",
        "<|emotion:aw",
        "<tool_call>",
        "<b>",
        "<br />",
    ],
)
def test_what_looks_like_a_token_is_struck_out(token: str) -> None:
    assert scrub(f"Hello {token} there").split() == ["Hello", "there"]


def test_text_around_stray_marks_stays() -> None:
    assert scrub("I <3 you | me >> all").split() == ["I", "3", "you", "me", "all"]
    assert "<" not in scrub("a <" + "b" * 200 + " and more |>")
    assert scrub("<| " + "word " * 40 + "|>").split() == ["word"] * 40


def test_wide_marks_are_made_plain_and_joiners_stay() -> None:
    assert scrub("你好，世界。「真的」？！") == '你好,世界."真的"?!'
    assert scrub("می\u200cروم") == "می\u200cروم"
    assert scrub("e\u0301") == "é"


def test_what_cannot_be_encoded_is_left_out() -> None:
    assert scrub("a\ud800b\x00c\u202ed") == "abcd"


@pytest.mark.parametrize("text", ["Hello", "7", "你", "<|emotion:awe|>ah", "é!", "1️⃣ a"])
def test_letters_and_digits_are_speakable(text: str) -> None:
    assert speakable(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "<|emotion:awe|>",
        "<|sfx:cough|> <|prosody:pause|>",
        "…",
        "?!",
        "😀👍🏽",
        "1️⃣",
        "🇩🇪",
    ]
    + ["<|audio|>", "<|audio", "\ud800"],
)
def test_tags_signs_and_emoji_are_not(text: str) -> None:
    assert not speakable(text)


@pytest.mark.parametrize(
    "part",
    ["<|", "|>", "<|a", "<", "<|<|a|>", "<|emotion:awe|>", "a|", "<tool", "</", "text|", "<| "],
)
def test_the_cost_is_linear(part: str) -> None:
    def cost_s(count: int) -> float:
        begin_s = time.process_time()
        scrub(part * count)
        return time.process_time() - begin_s

    cost_s(100)
    assert cost_s(20_000) < 2.0  # quadratic cost would take minutes
