"""Transcripts that ask for more, and those that may be all."""

from __future__ import annotations

import pytest

from realtime.session.trailing import trails_off


@pytest.mark.parametrize(
    "text",
    [
        "I would like to book a",
        "I went to the shop and.",
        "Well, because",
        "My name is Anna,",
        "So I thought...",
        "I think um",
        "We want to know if",
        "Send it to my",
        "It costs twenty \u2014",
    ],
)
def test_sentences_that_cannot_end_here(text: str) -> None:
    assert trails_off(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Um.",
        "What time is it?",
        "Yes, I am.",
        "What is it for?",
        "That is what I am looking at.",
        "Turn it on.",
        "I said no.",
        "Hello there",
        "\u4f60\u597d",
    ],
)
def test_sentences_that_may_end_here(text: str) -> None:
    assert not trails_off(text)
