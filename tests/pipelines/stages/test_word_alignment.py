"""From durations of phonemes to word ends, without a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.stages.onnx_graph import with_output_of
from pipelines.stages.phonemes import Pronounced, phonemes, pronounce
from pipelines.stages.word_times import PAUSE_MS, WordSound, spell, word_ends, word_sounds
from pipelines.types import WordEnd

ALPHABET = {"_": [0], "^": [1], "$": [2], " ": [3], ",": [4], "a": [5], "b": [6], "c": [7, 8]}
RATE_HZ = 1000


def said(*words: str) -> list[Pronounced]:
    return [Pronounced(ipa, place + 1) for place, ipa in enumerate(words)]


def test_units_are_phonemes_with_a_pad_after_each() -> None:
    spelling = spell(said("ab,", "c"), ALPHABET)
    assert spelling.ids == [1, 0, 5, 0, 6, 0, 4, 0, 3, 0, 7, 8, 0, 2]
    assert spelling.sounds == [(1, 2, 6), (2, 10, 13)]


def test_unknown_and_silent_phonemes_have_no_sound() -> None:
    spelling = spell(said("x", "", ",", "a"), ALPHABET)
    assert [text_end for text_end, _, _ in spelling.sounds] == [4]
    assert spelling.ids[-2:] == [0, 2]


def test_no_spaces_surround_what_is_said() -> None:
    assert spell(said("", "a", ""), ALPHABET).ids == [1, 0, 5, 0, 2]


def test_words_sound_for_as_long_as_their_units() -> None:
    spelling = spell(said("ab,", "c"), ALPHABET)
    durations = np.arange(1, len(spelling.ids) + 1, dtype=np.float32)
    sounds = word_sounds(spelling, durations, samples=10 * int(durations.sum()))
    assert sounds == (WordSound(30, 210, 1), WordSound(550, 910, 2))


@pytest.mark.parametrize(("units", "samples"), [(13, 130), (14, 141), (0, 0)])
def test_durations_that_do_not_fit_tell_nothing(units: int, samples: int) -> None:
    spelling = spell(said("ab,", "c"), ALPHABET)
    assert word_sounds(spelling, np.ones(units, np.float32), samples) == ()


def test_a_pause_is_told_by_its_end_with_the_text_before_it() -> None:
    gap = PAUSE_MS * RATE_HZ // 1000
    sounds = (WordSound(gap, 200, 3), WordSound(200 + gap - 1, 400, 7), WordSound(900, 990, 9))
    assert word_ends(sounds, RATE_HZ, text_start=10) == (
        *(WordEnd(gap, 10), WordEnd(200, 13)),
        WordEnd(400, 17),
        *(WordEnd(900, 17), WordEnd(990, 19)),
    )


def test_a_word_that_is_said_as_several_is_one_sound() -> None:
    sounds = (WordSound(100, 200, 0), WordSound(400, 500, 0), WordSound(600, 700, 4))
    assert word_ends(sounds, RATE_HZ) == (WordEnd(100, 0), WordEnd(700, 4))


def test_what_is_trimmed_away_is_not_counted() -> None:
    sounds = (WordSound(90, 200, 3), WordSound(300, 400, 7))
    assert word_ends(sounds, RATE_HZ, trimmed_samples=80)[0] == WordEnd(120, 3)
    # Nothing lies before the first sample that is played.
    assert word_ends(sounds, RATE_HZ, trimmed_samples=250)[0] == WordEnd(0, 3)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("one two, three", ["one", "two,", "three"]),
        ("a 你好 b", ["a", "b"]),
        ("a = b", ["a", "=", "b"]),
        ("well - yes", ["well", "-", "yes"]),
        ("café/bar 10-20!", ["café/bar", "10-20!"]),
    ],
)
def test_words_end_where_they_are_written(text: str, ends: list[str]) -> None:
    words = pronounce(text)
    assert [text[: word.text_end].split()[-1] for word in words] == ends
    assert " ".join(word.ipa for word in words).strip() == phonemes(text)


def test_a_word_is_said_with_its_neighbours() -> None:
    """ "the" before a vowel sounds otherwise: words are not looked up one by one."""
    the_apple, the_pear = pronounce("the apple"), pronounce("the pear")
    assert the_apple[0].ipa != the_pear[0].ipa
    (year,) = pronounce("1984")
    assert len(year.ipa.split()) == 3


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=40))
def test_any_text_has_words_in_order(text: str) -> None:
    ends = [word.text_end for word in pronounce(text)]
    assert ends == sorted(set(ends))
    assert all(0 < end <= len(text) for end in ends)


# ---- the model's graph -------------------------------------------------------------------------


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def node(operator: bytes, *outputs: bytes) -> bytes:
    return field(1, b"".join(field(2, output) for output in outputs) + field(4, operator))


def graph(*nodes: bytes) -> bytes:
    return bytes([8, 8]) + field(7, b"".join(nodes) + field(12, field(1, b"sound")))


def test_the_only_node_of_its_kind_becomes_an_output(tmp_path: Path) -> None:
    model = tmp_path / "voice.onnx"
    content = graph(node(b"Exp", b"x"), node(b"Ceil", b"w"), node(b"Mul", b"sound"))
    model.write_bytes(content)
    assert with_output_of(model, "Ceil") == (content + field(7, field(12, field(1, b"w"))), "w")
    assert model.read_bytes() == content


def test_what_is_an_output_already_is_not_made_one_twice(tmp_path: Path) -> None:
    model = tmp_path / "voice.onnx"
    content = graph(node(b"Ceil", b"sound"))
    model.write_bytes(content)
    assert with_output_of(model, "Ceil") == (content, "sound")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"this is no model" * 100,
        graph(node(b"Exp", b"x")),
        graph(node(b"Ceil", b"x"), node(b"Ceil", b"y")),
        graph(node(b"Ceil", b"w"))[:12],
    ],
)
def test_a_graph_without_it_is_left_alone(tmp_path: Path, content: bytes) -> None:
    model = tmp_path / "voice.onnx"
    model.write_bytes(content)
    assert with_output_of(model, "Ceil") is None
    assert with_output_of(tmp_path / "missing.onnx", "Ceil") is None
