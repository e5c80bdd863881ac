"""A flush releases all that was read, wherever it comes, and the text goes on behind it."""

from __future__ import annotations

import pytest

from pipelines.text.chunker import Utterance
from pipelines.text.marks import is_wide
from pipelines.text.narration import Narration
from pipelines.text.positions import FORGET_WORDS, Positions

TEXT = (
    "It costs **$5.20**, and see [the page](https://a.example/b) for 3 km of `code`.\n"
    "- First, that. 🙂\n- Then 你好世界。 And more!\n\n---\n| a | b |\n|---|---|\n| 1 | two |\n\n"
    "```py\nx = 1\n```\nDr. Smith came at 5 p.m. and said so."
)
CODE = range(TEXT.index("```py") + 3, TEXT.index("```\nDr") + 4)  # a flush there leaves it open
MORE = " Zebras are here."


def said(utterances: list[Utterance]) -> str:
    return "".join(utterance.spoken for utterance in utterances)


@pytest.mark.parametrize("end", range(len(TEXT) + 1))
def test_a_flush_releases_what_the_end_would_and_the_text_goes_on(end: int) -> None:
    flushed, ended = Narration(), Narration()
    head = flushed.feed(TEXT[:end]) + flushed.flush()
    whole = ended.feed(TEXT[:end]) + ended.finish()
    assert not flushed.pending
    assert [part.spoken.strip() for part in head] == [part.spoken.strip() for part in whole]
    assert (head[-1].end if head else 0) == end
    rest = flushed.feed(MORE) + flushed.finish()
    assert rest[-1].end == end + len(MORE)
    assert said(rest).endswith("Zebras are here." if end not in CODE else "")
    if said(head) and end not in CODE and not is_wide(TEXT[:end].rstrip("。")[-1]):
        assert "Zebras" in said(head + rest).split()  # it stands apart


def test_two_flushes_are_one() -> None:
    narration = Narration()
    assert said(narration.feed("Well") + narration.flush()) == "Well "
    assert narration.flush() == []


@pytest.mark.parametrize("mark", [" ", "-", "_", "\t"])
def test_words_behind_a_long_rule_are_said(mark: str) -> None:
    narration = Narration()
    found = narration.feed(mark * 450 + " So it is.") + narration.finish()
    assert said(found) == "So it is."
    assert found[-1].end == 450 + len(" So it is.")


def test_positions_forget_what_was_said_and_know_the_rest() -> None:
    positions, whole = Positions(), Positions()
    narration = Narration()
    text = "and so it went on, " * 1_000
    utterances = narration.feed(text) + narration.finish()
    spoken = 0
    for utterance in utterances:
        positions.add(utterance)
        whole.add(utterance)
        spoken += len(utterance.spoken)
        positions.forget(spoken)
        assert positions.to_display(spoken) == whole.to_display(spoken)
        assert len(positions._display_ends) <= FORGET_WORDS + 30
    # Less than that is as much as is still known.
    assert positions.to_display(0) <= positions.to_display(spoken) == len(text)
