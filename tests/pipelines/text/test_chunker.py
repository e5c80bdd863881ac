"""The sizes of utterances, and where they may be cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.chunker import STEPS
from pipelines.text.narration import Narration
from tests.pipelines.waiting import UNHURRIED


def chunks_of(text: str) -> list[str]:
    narration = Narration()
    return [one.spoken for one in narration.feed(text) + narration.finish() if one.spoken]


@UNHURRIED
@given(st.lists(st.from_regex(r"[a-z]{1,9}", fullmatch=True), max_size=80))
def test_words_stay_whole(words: list[str]) -> None:
    text = " ".join(word for word in words if word not in ("pm", "vs"))  # which are expanded
    assert [word for chunk in chunks_of(text) for word in chunk.split()] == text.split()


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("Well, yes I think so too.", ["Well, yes I think ", "so too."]),
        ("I see it, and so do you.", ["I see it, ", "and so do you."]),
        ("Of course! I can help you.", ["Of course! ", "I can help you."]),
        ("Ask Dr. Smith, e.g. today.", ["Ask Doctor Smith, ", "for example today."]),
        ("It is $5.50 now, I think.", ["It is ", "five dollars and fifty cents now, ", "I think."]),
        ("We have 342 of them here.", ["We have ", "three hundred forty two of them here."]),
        ("342,005 of them came.", ["three hundred forty two thousand five ", "of them came."]),
        ('He said "I won\'t." Then he left us.', ['He said "I won\'t." ', "Then he left us."]),
        ("Here they are:\n\n1. Apples\n2. Pears", ["Here they are: ", "one, Apples. two, Pears"]),
        ("在这里我们可以看到。然后呢？", ["在这里我们可以看", "到。然后呢？"]),
        ("", []),
        ("Yes.", ["Yes."]),
        ("   ", []),
    ],
)
def test_examples(text: str, chunks: list[str]) -> None:
    assert chunks_of(text) == chunks


def test_chunks_grow_in_words_that_are_said() -> None:
    sizes = [len(chunk.split()) for chunk in chunks_of("word " * 100)]
    assert sizes[:4] == [step.most_words for step in STEPS]
    assert sum(sizes) == 100
    numbers = [len(chunk.split()) for chunk in chunks_of("and 42 " * 100)]
    assert max(numbers[4:]) <= STEPS[-1].most_words and sum(numbers) == 300


def test_a_long_number_is_cut_in_the_end() -> None:
    chunks = chunks_of("It is " + "7" * 90 + ".")
    assert sum(len(chunk.split()) for chunk in chunks) == 92
    assert max(len(chunk.split()) for chunk in chunks) <= 2 * STEPS[-1].most_words


@pytest.mark.parametrize(
    ("text", "released"),
    [
        ("Hel", ""),
        ("Hello", ""),
        ("Hello there", ""),  # the second word may go on
        ("Hello there ", "Hello there "),
        ("Of course!", "Of course! "),
        ("Of course! I ", "Of course! "),
        ("So 3.", ""),  # may be 3.5
        ("It was pi, 3.", "It was pi, "),
        ("There are 5 ", "There are "),  # may be 5 km
        ("It is `code.", "It is "),
        ("It is [so](x. ", "It is "),
        ("It is <b class=x!", "It is "),
        ("See www.", ""),
        ("I saw Mr. ", "I saw "),
        ("好的，我来帮", "好的，我来"),
    ],
)
def test_a_pause_releases_what_is_whole(text: str, released: str) -> None:
    narration = Narration()
    utterances = narration.feed(text) + narration.pause()
    assert "".join(one.spoken for one in utterances) == released
    assert narration.pending == (len(released.strip()) < len(text.strip()))


def test_what_a_pause_released_stands_apart_from_what_follows() -> None:
    narration = Narration()
    found = [*narration.feed("Of course!"), *narration.pause(), *narration.feed("\nI can. Yes")]
    found += narration.finish()
    assert "".join(one.spoken for one in found) == "Of course! I can. Yes"
    assert [one.end for one in found][-1] == 21


def test_a_pause_later_in_a_reply_waits_for_more() -> None:
    narration = Narration()
    assert [one.spoken for one in narration.feed("One two three four five six ")] == [
        "One two three four "
    ]
    assert narration.pause() == []
    assert narration.feed("seven eight ") == []
    assert [one.spoken for one in narration.pause()] == ["five six seven eight "]


@pytest.mark.parametrize(
    ("text", "released"),
    [
        ("Well, it", "Well, "),
        ("It is over.", "It is over. "),
        ("There are 3.", ""),  # perhaps 3.5
        ("There are three", ""),
        ("", ""),
        ("はい、そ", "はい、"),
    ],
)
def test_text_that_broke_off_is_released_up_to_its_last_clause(text: str, released: str) -> None:
    narration = Narration()
    found = [*narration.feed(text), *narration.break_off()]
    assert "".join(one.spoken for one in found) == released
    assert not found or found[-1].end == min(len(released), len(text))
