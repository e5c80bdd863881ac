"""Estimated word times: never beyond the sound that is out, never back, whole at the end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES, FRAMES_PER_S
from pipelines.higgs.reply.words import ChunkWords, VoicePace

TEXT = "Hello there, this is a sentence. And another one follows."


def frames_of(seconds: float) -> int:
    return round(seconds * FRAMES_PER_S)


def all_told(words: ChunkWords, frames: int) -> list[tuple[int, int]]:
    words.ends(frames)
    return words.told(frames * FRAME_SAMPLES)


def test_every_word_is_told_once_with_its_end_in_the_pushed_text() -> None:
    told = all_told(ChunkWords(TEXT, 100, 0), frames_of(3.6))
    assert [TEXT[: end - 100].split()[-1] for _, end in told] == TEXT.split()


def test_samples_count_from_the_start_of_the_reply() -> None:
    first = all_told(ChunkWords(TEXT, 0, 0), 90)
    words = ChunkWords(TEXT, 0, 50)
    words.ends(90)
    later = words.told(140 * FRAME_SAMPLES)
    assert [samples - 50 * FRAME_SAMPLES for samples, _ in later] == [s for s, _ in first]


def test_longer_words_and_pauses_take_longer() -> None:
    words = ChunkWords("a, incomprehensible a b", 0, 0)
    told = {end: samples for samples, end in all_told(words, 75)}
    assert told[19] - told[2] > 3 * (told[21] - told[19])


def test_digits_and_wide_characters_are_words_that_take_their_time() -> None:
    told = all_told(ChunkWords("你好，世界", 0, 0), frames_of(1.5))
    assert [end for _, end in told] == [1, 2, 4, 5]
    spelt = ChunkWords("12345 then", 0, 0)
    spelt.ends(frames_of(2.6))
    (first, _), _ = spelt.told(frames_of(2.6) * FRAME_SAMPLES)
    assert first > 1.5 * CODEC_RATE_HZ


def test_tags_are_no_words_but_their_time_counts() -> None:
    text = "One<|prosody:long_pause|> two <|emotion:awe|>three <|audio|>"
    told = all_told(ChunkWords(text, 0, 0), frames_of(2.0))
    assert [text[:end].split()[-1].rpartition("|>")[2] for _, end in told][1:] == ["two", "three"]
    plain = all_told(ChunkWords("One two three", 0, 0), frames_of(2.0))
    assert told[1][0] - told[0][0] > plain[1][0] - plain[0][0]


def test_a_word_that_was_due_before_the_length_was_known_counts_from_now_on() -> None:
    words = ChunkWords("one two three four", 0, 0)
    out = 10 * FRAME_SAMPLES
    words.told(out)
    words.ends(20)  # far faster than was thought: "two" was over in what is out
    told = words.told(11 * FRAME_SAMPLES)
    assert told and told[0][0] == out


def test_a_chunk_without_words_covers_its_text_when_it_is_out() -> None:
    words = ChunkWords(" ... ", 7, 0)
    assert words.told(10 * FRAME_SAMPLES) == []
    assert words.text_end == 7
    assert all_told(words, 20) == []
    assert words.text_end == 12


def test_before_the_length_is_known_a_calm_reader_is_not_overtaken() -> None:
    words, known = ChunkWords(TEXT, 0, 0), ChunkWords(TEXT, 0, 0)
    true_frames = frames_of(3.6)  # measured with a calm voice
    true_at = {end: samples for samples, end in all_told(known, true_frames)}
    for frames in range(1, true_frames):
        for samples, end in words.told(frames * FRAME_SAMPLES):
            assert samples >= true_at[end]


def test_the_pace_is_learnt_and_stays_cautious() -> None:
    pace = VoicePace()
    unknown = pace.factor
    words = ChunkWords(TEXT, 0, 0, pace)
    for _ in range(20):
        words = ChunkWords(TEXT, 0, 0, pace)
        words.ends(frames_of(3.0))
    assert 1.0 < pace.factor * words.estimated_s / 3.0 < 1.3
    assert pace.factor < unknown


@given(
    text=st.text(alphabet="ab ,.12你好!<|>:😀\n", max_size=80),
    start=st.integers(0, 500),
    first_frame=st.integers(0, 300),
    pieces=st.lists(st.integers(1, 30), max_size=12),
    ends_at=st.integers(0, 12),
)
def test_told_words_lie_within_the_sound_and_ascend(
    text: str, start: int, first_frame: int, pieces: list[int], ends_at: int
) -> None:
    words = ChunkWords(text, start, first_frame)
    total = sum(pieces)
    emitted = first_frame
    last = (first_frame * FRAME_SAMPLES, start)
    for number, frames in enumerate(pieces):
        before = emitted * FRAME_SAMPLES
        if number == ends_at:
            words.ends(total)
        emitted += frames
        for told in words.told(emitted * FRAME_SAMPLES):
            # Scaled anew, a word may have been due before: it counts from now on.
            assert before <= told[0] <= emitted * FRAME_SAMPLES
            assert told[0] >= last[0] and told[1] > last[1]
            last = told
        assert words.text_end >= last[1]
    words.ends(total)
    for told in words.told(emitted * FRAME_SAMPLES):
        assert told[0] >= last[0] and told[1] > last[1]
        last = told
    assert words.text_end == start + len(text)
