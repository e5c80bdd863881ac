"""Characters whose halves were separated, or lost."""

from __future__ import annotations

import pytest

from pipelines.text.characters import CharacterJoiner, whole_characters


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", ""),
        ("grüße 世 \U0001f600", "grüße 世 \U0001f600"),
        ("\ud83d\ude00!", "\U0001f600!"),
        ("a\ud83db", "a\ufffdb"),
        ("a\ude00b", "a\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
    ],
)
def test_halves_are_joined_or_replaced(text: str, whole: str) -> None:
    assert whole_characters(text) == whole
    whole.encode()


@pytest.mark.parametrize("cut", range(7))
def test_a_text_may_be_cut_anywhere(cut: int) -> None:
    halves = "a\ud83d\ude00\ud83d\ude01b"
    joiner = CharacterJoiner()
    pieces = [joiner.feed(halves[:cut]), joiner.feed(halves[cut:])]
    assert "".join(pieces) == "a\U0001f600\U0001f601b"


def test_a_first_half_waits_for_its_other_half() -> None:
    joiner = CharacterJoiner()
    pieces = ["a\ud83d", "", "b", "\ud83d", "\ude00"]
    assert [joiner.feed(piece) for piece in pieces] == ["a", "", "\ufffdb", "", "\U0001f600"]
