"""How much of a reply was spoken, in words; and where the time until it went."""

from __future__ import annotations

import pytest

from benchmarks.stations import part_figures, time_spent
from benchmarks.words import Matched, last_matched
from realtime.commands.turns import Step, Turn
from realtime.session.ledger import Stamp, TurnTimeline

STORY = "A storm was near. The ship's captain was struggling to keep his ship safe."


@pytest.mark.parametrize(
    ("heard", "words", "unmatched"),
    [
        ("A storm was near.", 4, 0),
        ("a storm was near the ships captain was struggling to", 10, 0),  # "ships": misheard
        ("A storm was near. The sh", 5, 1),  # the cut word comes out as something else
        ("A storm was near. Thank you.", 4, 2),  # invented at the end
        ("A storm was.", 3, 0),
        ("", 0, 0),
        ("Hello!", 0, 1),
        (STORY, 14, 0),
    ],
)
def test_the_last_matched_word_is_where_a_reply_was_cut(
    heard: str, words: int, unmatched: int
) -> None:
    assert last_matched(STORY, heard) == Matched(words, unmatched)


def test_a_word_that_returns_is_matched_where_it_was_spoken() -> None:
    assert last_matched("a ship like a ship like a ship", "a ship like a") == Matched(4, 0)


def test_words_that_sound_alike_are_matched() -> None:
    whole = "its sails and sails, sailed through the night"
    assert last_matched(whole, "its sales and sales") == Matched(4, 0)
    assert last_matched(whole, "its sales and sales sell to") == Matched(4, 2)


def timeline(**stamps: float) -> TurnTimeline:
    pairs = sorted((at, Stamp[name.upper()]) for name, at in stamps.items())
    return TurnTimeline(1, "resp", "completed", True, tuple((stamp, at) for at, stamp in pairs))


def test_every_millisecond_belongs_to_the_station_that_ends_it() -> None:
    turn = Turn(steps_ms={Step.FIRST_AUDIO: 1900.0, Step.FIRST_SOUND: 1930.0})
    parts = time_spent(
        turn, 1000.0, timeline(speech_end=1100, transcript=1300, first_text=1500, turn_end=1450)
    )
    assert parts == {
        "voice activity": 100.0,
        "recognition": 200.0,
        "end of turn": 150.0,
        "first words": 50.0,
        "arrival": 400.0,
        "silence at the start": 30.0,
    }


def test_stations_before_the_end_of_speech_take_no_time() -> None:
    turn = Turn(steps_ms={Step.FIRST_SOUND: 1500.0})
    parts = time_spent(turn, 1000.0, timeline(speech_end=900, transcript=980))
    assert parts == {"voice activity": 0.0, "recognition": 0.0, "silence at the start": 500.0}


def test_a_turn_without_a_sound_has_no_parts() -> None:
    assert time_spent(Turn(), 0.0, None) == {}


def test_mean_parts_add_up_to_the_mean_latency() -> None:
    figures = part_figures([{"recognition": 100.0, "arrival": 50.0}, {"arrival": 150.0}])
    assert {name: part["mean"] for name, part in figures.items()} == {
        "recognition": 50.0,
        "arrival": 100.0,
    }
