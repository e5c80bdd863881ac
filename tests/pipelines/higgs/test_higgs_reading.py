"""The lines that a reply's text is spoken in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.higgs.member import V2, V3
from pipelines.higgs.reply.chunk import TextChunk
from pipelines.higgs.reply.reading import CHUNK_CHARS, LEAST_CHARS, Reading, pieces, speed_tag
from pipelines.higgs.text.tags import CONTROL_TAG
from pipelines.higgs.text.vocabulary import CONTROL_TAGS
from tests.pipelines.higgs.voices import script, tokenizer

SLOW = "<|prosody:speed_slow|>"


def always(chunk: TextChunk) -> bool:
    return True


def said(text: str, *, tag: str = "", member=V3) -> list[str]:  # type: ignore[no-untyped-def]
    """The lines as the tokenizer saw them."""
    seen: list[str] = []
    encode = tokenizer().encode

    class Watched:
        closing = ()

        def chunk(self, line: str) -> tuple[int, ...]:
            seen.append(line)
            return encode(line)

    list(Reading(Watched(), member, tag).lines(text, always))  # type: ignore[arg-type]
    return seen


@given(st.text(st.sampled_from("ab ,.!?:。、好🙂\n") | st.characters(), max_size=2000))
def test_joined_the_pieces_are_the_text(text: str) -> None:
    assert "".join(pieces(text, CHUNK_CHARS)) == text


@given(st.lists(st.sampled_from([*CONTROL_TAGS, "word ", "well, ", "3.14159", "x"]), max_size=200))
def test_no_control_tag_is_cut(parts: list[str]) -> None:
    text = "".join(parts)

    found = [tag for piece in pieces(text, 60) for tag in CONTROL_TAG.findall(piece)]

    assert found == CONTROL_TAG.findall(text)


def test_a_long_text_is_cut_where_a_speaker_pauses() -> None:
    sentence = "This is a sentence of some words, which is said in one breath. "

    found = list(pieces(sentence * 20, CHUNK_CHARS))

    assert all(piece.endswith(". ") and len(piece) <= CHUNK_CHARS for piece in found)


def test_numbers_and_times_are_no_place_for_a_cut() -> None:
    text = "a" * 200 + " at 10:30 it is 3.14159 " + "b" * 200

    found = list(pieces(text, CHUNK_CHARS))

    assert found[0].endswith(" ") and "3.14159" in found[0] + found[1]
    assert not any(piece.endswith(("10:", "3.")) for piece in found)


def test_syllables_of_wide_scripts_count_for_more() -> None:
    assert max(map(len, pieces("好" * 1000, CHUNK_CHARS))) <= CHUNK_CHARS // 4


def test_one_endless_word_is_cut_all_the_same() -> None:
    assert list(map(len, pieces("x" * 700, 300))) == [300, 300, 100]


def test_a_speed_holds_for_every_sentence_without_one() -> None:
    fast = "<|prosody:speed_fast|>"

    (line,) = said(f"Hello there. {fast}How are you? I am well.", tag=SLOW)

    assert line == f"{SLOW}Hello there. {fast}How are you? {SLOW}I am well."


def test_a_model_without_control_tags_is_given_none() -> None:
    assert said("<|emotion:awe|>Look at that.", tag=SLOW, member=V2) == ["Look at that."]


@pytest.mark.parametrize(
    ("speed", "tag"),
    [(0.5, "speed_very_slow"), (0.85, "speed_slow"), (1.2, "speed_fast"), (2.0, "speed_very_fast")],
)
def test_a_speed_becomes_the_nearest_tag(speed: float, tag: str) -> None:
    assert speed_tag(speed) == f"<|prosody:{tag}|>"


def test_about_the_usual_speed_there_is_no_tag() -> None:
    assert {speed_tag(speed) for speed in (0.95, 1.0, 1.05)} == {""}


def test_a_line_without_words_is_told_and_not_spoken() -> None:
    lines = list(Reading(script(), V3).lines("🙂 ...", always))

    assert [(line.text, line.chunk) for line in lines] == [("🙂 ...", None)]


def test_what_a_slot_has_no_room_for_is_cut_further() -> None:
    text = f"{SLOW}The weather is fine today, and it will be so tomorrow. " * 4
    whole = list(Reading(script(), V3).lines(text, always))

    lines = list(Reading(script(), V3).lines(text, lambda chunk: len(chunk.items) <= 60))

    assert max(len(line.chunk.items) for line in whole if line.chunk is not None) > 60
    assert "".join(line.text for line in lines) == text
    chunks = [line.chunk for line in lines if line.chunk is not None]
    assert all(len(chunk.items) <= 60 for chunk in chunks)
    slow = tokenizer().encode(SLOW)[0]
    assert all(slow in chunk.items for chunk in chunks), "a speed holds behind the cut, and before"


def test_a_word_without_end_is_cut_as_far_as_it_takes() -> None:
    lines = list(Reading(script(), V3).lines("a" * 200, lambda chunk: False))
    assert "".join(line.text for line in lines) == "a" * 200
    assert all(len(line.text) <= LEAST_CHARS for line in lines)
