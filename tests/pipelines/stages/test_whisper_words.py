"""Tokens become words, and words find their place in the audio."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pipelines.stages.speech_pauses import Shortened
from pipelines.stages.whisper_alignment import align_tokens, warp
from pipelines.stages.whisper_vocabulary import END, Vocabulary
from pipelines.stages.whisper_words import Spelled, fit_to_sound, place_words, spell_words
from pipelines.types import HEARING_RATE_HZ, HeardWord, Samples


def characters() -> dict[int, str]:
    """GPT-2's printable character of each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {
        byte: chr(256 + position) for position, byte in enumerate(others)
    }


BYTES = characters()
LONGER = (" good", " day", " mor", "ning", "你", "好", "吗", "。")


def written(text: str) -> str:
    return "".join(BYTES[byte] for byte in text.encode())


def vocabulary() -> Vocabulary:
    """Every byte, some words, the end."""
    return Vocabulary([*(BYTES[byte] for byte in range(256)), *map(written, LONGER), END])


def tokens_of(*pieces: str | bytes) -> list[int]:
    return [
        token
        for piece in pieces
        for token in (
            [256 + LONGER.index(piece)]
            if piece in LONGER
            else list(piece if isinstance(piece, bytes) else piece.encode())
        )
    ]


def hum(seconds: float) -> Samples:
    at = np.arange(int(seconds * HEARING_RATE_HZ)) / HEARING_RATE_HZ
    return (0.1 * np.sin(2 * np.pi * 150 * at)).astype(np.float32)


def silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * HEARING_RATE_HZ), np.float32)


def test_a_word_begins_with_its_space() -> None:
    tokens = tokens_of(" good", " mor", "ning", ",", " ", "a", "b", "!")
    assert spell_words(tokens, vocabulary(), "en") == [
        Spelled("good", 1),
        Spelled("morning,", 3),
        Spelled("ab!", 4),
    ]


def test_a_character_of_several_tokens_is_whole() -> None:
    tokens = tokens_of(" good", " ", *(bytes([byte]) for byte in "é".encode()), "t")
    assert [word.text for word in spell_words(tokens, vocabulary(), "en")] == ["good", "ét"]


def test_without_spaces_characters_are_words() -> None:
    tokens = tokens_of("你", "好", *(bytes([byte]) for byte in "我".encode()), "吗", "。")
    words = spell_words(tokens, vocabulary(), "zh")
    assert words == [Spelled("你", 1), Spelled("好", 1), Spelled("我", 3), Spelled("吗。", 2)]
    assert len(spell_words(tokens, vocabulary(), "en")) == 1


def test_words_last_until_the_next_begins() -> None:
    words = [Spelled("good", 1), Spelled("morning,", 3)]
    assert place_words(words, [0.1, 0.5, 0.7, 0.8, 1.2]) == [
        HeardWord("good", 0.1, 0.5),
        HeardWord("morning,", 0.5, 1.2),
    ]


def test_quiet_belongs_to_no_word() -> None:
    audio = np.concatenate([silence(0.5), hum(0.5), silence(1.0), hum(0.5), silence(0.5)])
    words = [HeardWord("one", 0.2, 1.4), HeardWord("two", 1.4, 3.0), HeardWord("no", 3.0, 3.0)]
    one, two, nothing = fit_to_sound(words, audio)
    assert (one.start_s, one.end_s) == pytest.approx((0.5, 1.0), abs=0.021)
    assert (two.start_s, two.end_s) == pytest.approx((2.0, 2.5), abs=0.021)
    assert nothing.end_s > nothing.start_s


def test_times_of_shortened_audio_lead_back() -> None:
    audio = np.concatenate([hum(2.0), silence(3.0), hum(1.0), silence(4.0), hum(1.0)])
    short = Shortened.of(audio)
    assert len(short.audio) == int(4.8 * HEARING_RATE_HZ)
    found = [short.before_s(at_s) for at_s in (0.0, 1.9, 2.5, 3.3, 4.5)]
    assert found == pytest.approx([0.0, 1.9, 5.1, 5.9, 10.7])
    assert short.before_s(2.2, is_end=True) == pytest.approx(2.2)
    assert short.before_s(2.2) == pytest.approx(4.8)
    assert short.before_s(99.0) == pytest.approx(11.0)


def test_audio_without_pauses_is_left_as_it_is() -> None:
    audio = hum(1.0)
    assert Shortened.of(audio).audio is audio
    assert Shortened.of(audio).before_s(0.4) == pytest.approx(0.4)


def way_costs(costs: np.ndarray) -> dict[tuple[int, ...], float]:
    """Of every way of few steps, its cost by where it comes to each token."""
    tokens, positions = costs.shape
    found: dict[tuple[int, ...], float] = {}
    for begins in itertools.combinations_with_replacement(range(positions), tokens - 1):
        starts = (0, *begins)
        # A token lasts to where the next begins, or to the position before.
        ends = [(start, start - 1) for start in begins] + [(positions - 1,)]
        for lasts in itertools.product(*ends):
            spans = list(zip(starts, lasts, strict=True))
            if all(first <= last for first, last in spans):
                cost = sum(costs[n, a : b + 1].sum() for n, (a, b) in enumerate(spans))
                found[starts] = min(cost, found.get(starts, np.inf))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_cheapest_way_is_found(seed: int) -> None:
    costs = np.random.default_rng(seed).standard_normal((4, 7))
    ways = way_costs(costs)
    assert ways[tuple(warp(costs))] == pytest.approx(min(ways.values()))


def test_tokens_begin_where_they_are_looked_at() -> None:
    weights = np.full((2, 3, 60), 0.001, np.float32)
    for token, first in enumerate((0, 20, 45)):
        weights[:, token, first : first + 15] = 0.1
    begins = align_tokens(weights)
    assert begins[0] == 0
    assert 14 <= begins[1] <= 20
    assert 34 <= begins[2] <= 45
    assert align_tokens(np.ones((1, 4, 2), np.float32))[0] == 0
