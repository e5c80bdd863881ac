from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.chunker import MOST_CHARS, STEPS, Chunker
from tests.pipelines.waiting import UNHURRIED

PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            ["Dr. ", "e.g. ", "3.5", "1,000", "\n", "- ", "1. ", "Hello", "! ", ", ", "你好", "。"]
            + ["U.S. ", '."', " ", "…", "word ", "😀", "the ", "end. ", "**", "(a) ", "\n\n"]
        ),
        st.text(max_size=8),
    ),
    max_size=60,
)


def chunks_of(text: str, sizes: list[int] | None = None) -> list[str]:
    chunker = Chunker()
    chunks = []
    start = 0
    for size in sizes or [len(text)]:
        chunks += chunker.feed(text[start : start + size])
        start += size
    chunks += chunker.feed(text[start:]) + chunker.finish()
    ends = [chunk.end for chunk in chunks]
    assert ends == [sum(len(c.text) for c in chunks[: n + 1]) for n in range(len(chunks))]
    return [chunk.text for chunk in chunks]


@UNHURRIED
@given(PIECES.map("".join), st.lists(st.integers(0, 9), max_size=40))
def test_borders_depend_on_the_text_alone_and_nothing_is_lost(text: str, sizes: list[int]) -> None:
    whole = chunks_of(text)
    assert "".join(whole) == text
    assert chunks_of(text, sizes) == whole
    assert all(whole) and all(len(chunk) <= 2 * MOST_CHARS for chunk in whole)


@UNHURRIED
@given(PIECES, st.lists(st.booleans(), min_size=60, max_size=60))
def test_pauses_lose_nothing(pieces: list[str], pauses: list[bool]) -> None:
    chunker = Chunker()
    chunks = []
    for piece, paused in zip(pieces, pauses, strict=False):
        chunks += chunker.feed(piece)
        if paused:
            chunks += chunker.pause()
    chunks += chunker.finish()
    assert "".join(chunk.text for chunk in chunks) == "".join(pieces)
    assert not chunker.pending


@UNHURRIED
@given(st.lists(st.from_regex(r"[a-z]{1,9}|\d{1,3}([.,]\d{3})*", fullmatch=True), max_size=80))
def test_words_and_numbers_stay_whole(words: list[str]) -> None:
    text = " ".join(words)
    assert [word for chunk in chunks_of(text) for word in chunk.split()] == words


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("Well, yes I think so too.", ["Well, yes I think ", "so too."]),
        ("I see it, and so do you.", ["I see it, ", "and so do you."]),
        ("Of course! I can help you.", ["Of course! ", "I can help you."]),
        ("Ask Dr. Smith, e.g. today.", ["Ask Dr. Smith, ", "e.g. today."]),
        ("Pi is about 3.14159, roughly said.", ["Pi is about 3.14159, ", "roughly said."]),
        ("It costs exactly Mr. Jones 1,000 dollars.", None),
        ('He said "I won\'t." Then he left us.', ['He said "I won\'t." ', "Then he left us."]),
        ("Here you are:\n\n1. Apples and so on\n2. Pears", None),
        ("在这里我们可以看到。然后呢？", ["在这里我们可以看", "到。然后呢？"]),
        ("", []),
        ("Yes.", ["Yes."]),
        ("   ", ["   "]),
    ],
)
def test_examples(text: str, chunks: list[str] | None) -> None:
    found = chunks_of(text)
    if chunks is not None:
        assert found == chunks
    for whole in ("Dr. Smith", "Mr. Jones", "3.14159", "1,000", "1. Apples", "2. Pears"):
        assert whole not in text or any(whole in chunk for chunk in found)


def test_chunks_grow() -> None:
    text = " ".join(f"word{number}" for number in range(100))
    sizes = [len(chunk.split()) for chunk in chunks_of(text)]
    assert sizes[:4] == [step.most_words for step in STEPS]
    assert sum(sizes) == 100


def test_ten_thousand_words_without_a_mark_come_in_bounded_chunks() -> None:
    chunks = chunks_of("word " * 10_000)
    assert max(len(chunk.split()) for chunk in chunks) == STEPS[-1].most_words


@pytest.mark.parametrize(
    "text", ["x" * 5000, " " * 5000, "-" * 5000, "。" * 5000, "e\u0301" * 2500]
)
def test_text_without_words_is_bounded(text: str) -> None:
    assert max(map(len, chunks_of(text))) <= 2 * MOST_CHARS


@pytest.mark.parametrize(
    ("text", "released"),
    [
        ("Hel", ""),
        ("Hello", ""),
        ("Hello there", ""),  # the second word may go on
        ("Hello there ", "Hello there "),
        ("Of course!", "Of course!"),
        ("Of course! I ", "Of course! "),
        ("So 3.", ""),  # may be 3.5
        ("It was pi, 3.", "It was pi, "),
        ("See www.", ""),
        ("I saw Mr. ", "I saw "),
        ("好的，我来帮", "好的，我来"),
    ],
)
def test_a_pause_releases_what_is_whole(text: str, released: str) -> None:
    chunker = Chunker()
    before = "".join(chunk.text for chunk in chunker.feed(text))
    after = "".join(chunk.text for chunk in chunker.pause())
    assert before + after == released


def test_a_pause_later_in_a_reply_waits_for_more() -> None:
    chunker = Chunker()
    assert [chunk.text for chunk in chunker.feed("One two three four five six ")] == [
        "One two three four "
    ]
    assert chunker.pause() == []
    assert chunker.feed("seven eight ") == []
    assert [chunk.text for chunk in chunker.pause()] == ["five six seven eight "]
