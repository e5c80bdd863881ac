"""Control tags stand where the model was trained to see them."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.higgs.text.direction import ActiveTags, direct
from pipelines.higgs.text.tags import CONTROL_TAG, scrub, speakable
from pipelines.higgs.text.vocabulary import CONTROL_TAGS

AWE, FEAR = "<|emotion:awe|>", "<|emotion:fear|>"
SLOW, LOW, WHISPER = "<|prosody:speed_slow|>", "<|prosody:pitch_low|>", "<|style:whispering|>"
PAUSE, LONG = "<|prosody:pause|>", "<|prosody:long_pause|>"
LAUGH, COUGH, SIGH = "<|sfx:laughter|>", "<|sfx:cough|>", "<|sfx:sigh|>"


def pieces(*texts: str) -> list[str]:
    """What becomes of a reply pushed in these pieces."""
    active = ActiveTags()
    found: list[str] = []
    for text in texts:
        directed = direct(text, active)
        active = directed.active
        found.append(directed.text)
    return found


@pytest.mark.parametrize(
    ("text", "directed"),
    [
        ("Hello there.", "Hello there."),
        ("  Hello \n", "Hello"),
        # Tags of a sentence go to its start.
        (f"{AWE} Look!", f"{AWE}Look!"),
        (f"Look at {AWE}this.", f"{AWE}Look at this."),
        (f"Hi. Look at this {AWE}.", f"Hi. {AWE}Look at this ."),
        (f"Hi.{AWE} Look.", f"Hi. {AWE}Look."),
        (f"{AWE}{SLOW}{LOW}Look.", f"{AWE}{SLOW}{LOW}Look."),
        # One of each kind: the last before the sentence, the first inside it.
        (f"{AWE}{FEAR}Look.", f"{FEAR}Look."),
        (f"{AWE}Look {FEAR}there.", f"{AWE}Look there."),
        (f"I met Dr. {AWE}Who.", f"{AWE}I met Dr. Who."),
        (f"你好。{AWE}世界", f"你好.{AWE}世界"),
        # Pauses are glued to the word before them; the longest of a row stays.
        (f"One {PAUSE} two", f"One{PAUSE} two"),
        (f"One, {PAUSE}two", f"One,{PAUSE} two"),
        (f"One. {PAUSE} Two.", f"One.{PAUSE} Two."),
        (f"One {PAUSE}{LONG} {PAUSE} two", f"One{LONG} two"),
        (f"你好{PAUSE}世界", f"你好{PAUSE}世界"),
        # Sounds are written out.
        (f"{LAUGH}Haha, good one.", f"{LAUGH}Haha, good one."),
        (f"{LAUGH} Hahaha good one.", f"{LAUGH}Hahaha good one."),
        (f"{LAUGH} That was good.", f"{LAUGH}Haha, That was good."),
        (f"{LAUGH} He was good.", f"{LAUGH}Haha, He was good."),
        (f"Well {COUGH}. Yes", f"Well {COUGH}Ahem. Yes"),
        (f"Good one!{LAUGH}", f"Good one! {LAUGH}Haha"),
        (f"{LAUGH}哈哈，好", f"{LAUGH}哈哈,好"),
        (f"{SIGH}uhh well", f"{SIGH}uhh well"),
        # Without anything to say there are no tags either.
        (f"{AWE}", ""),
        (f"{LAUGH} {PAUSE} ...", ""),
        (f"{AWE}Look. {FEAR}...", f"{AWE}Look."),
    ],
)
def test_tags_go_to_their_places(text: str, directed: str) -> None:
    assert direct(text).text == directed


def test_a_sentence_that_goes_on_begins_again_with_its_tags() -> None:
    found = pieces(f"{AWE}{SLOW}This is a sentence,", "and here it ends. A new one", "goes on.")
    assert found == [
        f"{AWE}{SLOW}This is a sentence,",
        f"{AWE}{SLOW}and here it ends. A new one",
        "goes on.",
    ]


def test_tags_at_the_end_of_a_piece_are_for_the_next() -> None:
    assert pieces(f"One. {AWE}", "Two.", "Three.") == ["One.", f"{AWE}Two.", "Three."]
    assert pieces(AWE, f"{WHISPER}", "Two.") == ["", "", f"{AWE}{WHISPER}Two."]


def test_a_writer_may_change_the_mood_between_two_pieces() -> None:
    assert pieces(f"{AWE}One,", f"{FEAR}two") == [f"{AWE}One,", f"{FEAR}two"]
    assert pieces(f"{AWE}One,", f"{SLOW}two") == [f"{AWE}One,", f"{AWE}{SLOW}two"]


def test_what_happens_at_its_own_place_is_not_repeated() -> None:
    assert pieces(f"One{PAUSE} and {LAUGH}Haha,", "two") == [f"One{PAUSE} and {LAUGH}Haha,", "two"]


TEXTS = st.lists(
    st.sampled_from(
        [*list(CONTROL_TAGS)[::4], PAUSE, LONG, LAUGH, "Hello ", "one", ". ", "! ", ", ", " ", "\n"]
        + ["你好", "。", "Dr. ", "<|audio|>", "haha", "😀"]
    ),
    max_size=16,
).map("".join)


@given(TEXTS)
@example("你好<|sfx:cough|>\n你好")
def test_words_stay_in_order_and_sounds_are_written_once(text: str) -> None:
    directed = direct(text)
    assert scrub(directed.text) == directed.text
    if not speakable(text):
        assert directed.text == ""
        return
    said = "".join(filter(str.isalnum, CONTROL_TAG.sub(" ", scrub(text))))
    now = "".join(filter(str.isalnum, CONTROL_TAG.sub(" ", directed.text)))
    left = iter(now)
    assert all(char in left for char in said)  # a subsequence: only sounds were added
    # What was directed is left alone: no sound is written out twice.
    again = "".join(filter(str.isalnum, CONTROL_TAG.sub(" ", direct(directed.text).text)))
    assert again == now


@given(TEXTS)
def test_no_pause_or_sentence_tag_stands_behind_a_space(text: str) -> None:
    directed = direct(text).text
    assert f" {PAUSE}" not in directed and f" {LONG}" not in directed
    for tag in CONTROL_TAGS.values():
        if tag.aspect:
            assert f"{tag.text} " not in directed


@pytest.mark.parametrize("part", [".", "M. ", "\n", "(", f"a {LAUGH}", f"b{PAUSE}", AWE])
def test_the_cost_is_linear(part: str) -> None:
    begin_s = time.process_time()
    direct(part * 30_000)
    # Ten times what it takes; a quadratic cost is many times that.
    assert time.process_time() - begin_s < 2.5
