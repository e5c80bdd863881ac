"""Word ends of the voice: what counts as heard, and when its text is shown."""

from __future__ import annotations

import pytest

from realtime.session import events as ev
from realtime.session.playback import Mark, Track
from realtime.session.reply import Reply
from tests.realtime.session.script import RATE_HZ, Script

TEXT = "one two three four five six seven eight nine ten"
# A slow beginning, a pause behind the fourth word, and a hasty end: far from even.
WORD_ENDS_MS = (800, 1200, 1500, 2000, 3600, 3700, 3800, 3900, 4000, 4400)
PAUSE_END_MS = 3000


def samples(ms: float) -> int:
    return round(ms * RATE_HZ / 1000)


def told_words() -> tuple[tuple[int, int], ...]:
    words, end = [], 0
    for word, over_ms in zip(TEXT.split(), WORD_ENDS_MS, strict=True):
        end = TEXT.index(word, end) + len(word)
        words.append((samples(over_ms), end))
        if word == "four":
            words.append((samples(PAUSE_END_MS), end))
    return tuple(words)


def speaking() -> Script:
    script = Script()
    script.ask()
    script.write(TEXT)
    script.speak(5000, words=told_words())
    return script


@pytest.mark.parametrize(
    ("heard_ms", "words"),
    [
        (160, 0),
        (599, 0),
        (600, 1),  # most of the first word
        (1099, 1),
        (1100, 2),
        (2048, 4),
        (3000, 4),  # the pause is over, the fifth word begins
        (3449, 4),
        (3450, 5),
        (3904, 8),
        (4480, 10),
    ],
)
def test_a_word_counts_when_most_of_it_was_heard(heard_ms: int, words: int) -> None:
    script = speaking()
    script.silence(4800)
    script.say(640)
    script.step(ev.PlaybackReported(script.item_ids[1], heard_ms))  # where it stopped to play
    script.silence(640)
    heard = " ".join(TEXT.split()[:words])
    said = [text for role, text in script.prompt if role == "assistant"]
    assert said == ([heard] if heard else [])


@pytest.mark.parametrize("cut_ms", [0, 500, 1250, 2500, 3650, 4999])
def test_a_truncation_is_off_by_no_more_than_a_word(cut_ms: int) -> None:
    script = speaking()
    script.finish()
    script.silence(6000)
    script.truncate(script.item_ids[1], cut_ms)
    script.ask()
    whole = sum(over_ms <= cut_ms for over_ms in WORD_ENDS_MS)
    said = [text.split() for role, text in script.prompt if role == "assistant"]
    kept = said[0] if said else []
    assert kept == TEXT.split()[: len(kept)]
    assert whole <= len(kept) <= whole + 1


def test_text_leads_its_sound_by_no_more_than_the_word_that_begins() -> None:
    reply = Reply("r", speaks=True, rate_hz=RATE_HZ)
    reply.add_text(TEXT, 0.0)
    reply.add_audio(samples(5000), len(TEXT), 0.0, told_words())
    for sent_ms in range(40, 5040, 40):
        shown = TEXT[: reply.characters_leaving(samples(sent_ms))].split()
        over = sum(over_ms < sent_ms for over_ms in WORD_ENDS_MS)
        in_pause = WORD_ENDS_MS[3] < sent_ms <= PAUSE_END_MS
        assert len(shown) == min(len(WORD_ENDS_MS), over + (0 if in_pause else 1))


def test_words_whose_last_samples_come_later_stay_in_order() -> None:
    """Whatever changes the rate holds samples back: a word may end beyond what was produced."""
    reply = Reply("r", speaks=True, rate_hz=RATE_HZ)
    reply.add_text("one two three", 0.0)
    reply.add_audio(900, 8, 0.0, ((400, 3), (950, 7)))
    reply.add_audio(1000, 13, 0.0, ((1900, 13),))
    reply.add_audio(100, 13, 0.0)
    assert [mark[:2] for mark in reply.marks] == sorted(mark[:2] for mark in reply.marks)
    assert [mark for mark in reply.marks if mark.ends_word] == [
        Mark(400, 3, True),
        Mark(950, 7, True),
        Mark(1900, 13, True),
    ]
    assert reply.marks[-1] == Mark(2000, 13)
    assert reply.characters_leaving(900) == 7


def test_words_of_text_that_is_not_there_are_cut_to_it() -> None:
    reply = Reply("r", speaks=True, rate_hz=RATE_HZ)
    reply.add_text("one", 0.0)
    reply.add_audio(1000, 10**6, 0.0, ((500, 3), (400, 2), (900, 99)))
    assert [mark.characters for mark in reply.marks] == [3, 3, 3, 3]
    assert [mark.samples for mark in reply.marks] == [500, 500, 900, 1000]


def test_without_word_ends_characters_are_interpolated() -> None:
    track = Track(1000, marks=[Mark(1000, 10), Mark(2000, 40)])
    assert [track.characters_at(ms) for ms in (0, 500, 1000, 1500, 2500)] == [0, 5, 10, 25, 40]
