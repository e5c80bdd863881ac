"""Words become segments that can be read, and those become subtitles."""

from __future__ import annotations

from pipelines.types import HeardWord
from realtime.audio.subtitles import (
    LONGEST_CHARACTERS,
    LONGEST_S,
    Segment,
    segment_words,
    write_srt,
    write_vtt,
)


def said(text: str, every_s: float = 0.3, from_s: float = 0.0) -> list[HeardWord]:
    return [
        HeardWord(word, from_s + every_s * number, from_s + every_s * (number + 0.9))
        for number, word in enumerate(text.split())
    ]


def texts(text: str, words: list[HeardWord]) -> list[str]:
    return [segment.text for segment in segment_words(text, words)]


def test_a_sentence_is_a_segment() -> None:
    text = "Good day. How are you? Well."
    assert texts(text, said(text)) == ["Good day.", "How are you?", "Well."]


def test_a_segment_has_the_times_of_its_first_and_last_word() -> None:
    segments = list(segment_words("Good day. Well.", said("Good day. Well.", 1.0, 2.0)))
    assert [(s.start_s, s.end_s) for s in segments] == [(2.0, 3.9), (4.0, 4.9)]


def test_a_pause_ends_a_segment() -> None:
    words = [*said("one two"), *said("three", from_s=3.0)]
    assert texts("one two three", words) == ["one two", "three"]


def test_long_talk_is_parted() -> None:
    text = " ".join(["word"] * 100)
    segments = list(segment_words(text, said(text, 0.1)))
    assert " ".join(segment.text for segment in segments) == text
    assert max(len(segment.text) for segment in segments) <= LONGEST_CHARACTERS
    slow = list(segment_words(text, said(text, 0.6)))
    assert max(segment.end_s - segment.start_s for segment in slow) <= LONGEST_S
    assert " ".join(segment.text for segment in slow) == text


def test_long_sentences_are_parted_at_clauses() -> None:
    text = "Before the sun had risen over the eastern hills, we went down to the river to fish."
    assert texts(text, said(text, 0.1))[0].endswith("hills,")


def test_no_word_is_left_alone_at_the_end() -> None:
    text = (
        "We went down to the river to fish before the sun had risen over the eastern hills again "
        "and again."
    )
    first, second = texts(text, said(text, 0.1))
    assert f"{first} {second}" == text
    assert abs(len(first) - len(second)) <= len("before")
    slow = "One two three four five six seven eight nine ten eleven twelve thirteen."
    first, second = texts(slow, said(slow, 0.6))
    assert min(len(first.split()), len(second.split())) >= 5
    clause = "Before the sun had risen over the eastern hills, though."
    assert texts(clause, said(clause, 0.1)) == [clause]


def test_a_single_word_that_nothing_can_be_added_to_stays_alone() -> None:
    words = [HeardWord("Oooh,", 0.0, 7.0), HeardWord("well.", 7.0, 7.5)]
    assert texts("Oooh, well.", words) == ["Oooh,", "well."]


def test_what_is_between_words_is_kept() -> None:
    words = [HeardWord(character, 0.1 * n, 0.1 * n + 0.1) for n, character in enumerate("你好吗")]
    assert texts("你好吗", words) == ["你好吗"]


def test_srt_has_numbers_and_commas() -> None:
    segments = [Segment("Good day.", 0.0, 1.25), Segment("a\n\nb", 3661.0, 3662.9996)]
    assert "".join(write_srt(segments)) == (
        "1\n00:00:00,000 --> 00:00:01,250\nGood day.\n\n2\n01:01:01,000 --> 01:01:03,000\na b\n\n"
    )


def test_vtt_has_a_head_and_escapes() -> None:
    assert "".join(write_vtt([Segment("a <b> & c", 0.5, 1.0)])) == (
        "WEBVTT\n\n00:00:00.500 --> 00:00:01.000\na &lt;b&gt; &amp; c\n\n"
    )
    assert "".join(write_vtt([])) == "WEBVTT\n\n"
    assert "".join(write_srt([])) == ""
