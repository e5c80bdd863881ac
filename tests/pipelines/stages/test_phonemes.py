"""Text to phonemes: nothing that can be said is dropped, nothing that cannot be said breaks it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.stages.phonemes import phonemes
from pipelines.stages.tts_piper import (
    FIRST_PIECE_WORDS,
    LEAD_MS,
    PIECE_CHARS,
    PIECE_WORDS,
    WORD_CHARS,
    pieces,
    trim_lead,
)

UNHURRIED = settings(deadline=None, max_examples=50)  # the dictionaries are loaded once, slowly


@pytest.mark.parametrize(
    ("text", "sounds"),
    [
        ("three", "θɹˈiː"),
        ("3:30", "θˈɜːɾi"),
        ("3:30", "θɹˈiː"),
        ("10-20", "twˈɛnti"),
        ("a = b", "ˈiːkwəl"),
        ("café", "kæfˈeɪ"),
        ("naïve", "nɑːˈiːv"),
        ("go now", "nˈaʊ"),
    ],
)
def test_words_are_said(text: str, sounds: str) -> None:
    assert sounds in phonemes(text)


@pytest.mark.parametrize("text", ["", "  ", "!!!", "…", "😀", "你好", "— –"])
def test_what_cannot_be_said_is_nothing(text: str) -> None:
    assert phonemes(text) == ""


@UNHURRIED
@given(st.text(max_size=40))
def test_any_text_is_survived(text: str) -> None:
    assert isinstance(phonemes(text), str)


def test_the_first_piece_is_short_and_ends_with_a_clause() -> None:
    text = "Of course! Paris, the capital of France, is famous for its museums and its tower."
    found = pieces(text, first=True)
    assert found[0] == "Of course! Paris,"
    assert "".join(found) == text
    assert pieces("Of course, it is.", first=True) == ["Of course, it is."]


def test_abbreviations_are_not_cut() -> None:
    text = "I saw Dr. Smith, who is a very old friend of mine, in the park today."
    assert not any(piece.endswith("Dr.") for piece in pieces(text, first=True))


@given(st.text(alphabet="ab ,.!?;\n", max_size=400), st.booleans())
def test_pieces_joined_are_the_chunk(text: str, first: bool) -> None:
    found = pieces(text, first=first)
    assert "".join(found) == text
    assert all(len(piece.split()) <= PIECE_WORDS for piece in found)
    assert all(len(piece) <= PIECE_CHARS for piece in found)
    assert FIRST_PIECE_WORDS < PIECE_WORDS


def test_long_words_make_short_pieces() -> None:
    """Whoever is more urgent waits for the end of a piece, however a text is written."""
    words = ["antidisestablishmentarianism"] * 16
    found = pieces(" ".join(words), first=False)
    assert [len(piece.split()) for piece in found] == [5, 5, 5, 1]
    assert " ".join(found).split() == words
    endless = pieces("And " + "a" * WORD_CHARS * 4, first=True)
    assert [len(piece.strip()) for piece in endless] == [3, *[WORD_CHARS] * 4]


def test_the_lead_is_trimmed_to_its_length() -> None:
    rate_hz = 22_050
    lead = LEAD_MS * rate_hz // 1000
    sound = np.full(1000, 0.5, np.float32)
    late = np.concatenate([np.zeros(5000, np.float32), sound])
    assert len(trim_lead(late, rate_hz)) == lead + len(sound)
    assert len(trim_lead(sound, rate_hz)) == len(sound)
    silent = np.zeros(500, np.float32)
    assert len(trim_lead(silent, rate_hz)) == 500
