"""What the recogniser writes over noise is refused; what people say is kept."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.stages.whisper_evidence import is_hopeless, is_made_up, is_silent, voiced_s
from pipelines.stages.whisper_model import Hearing
from pipelines.types import HEARING_RATE_HZ, Samples


def hearing(
    text: str, log_probability: float, no_speech: float, compression: float = 0.8
) -> Hearing:
    return Hearing(text, 1.0, log_probability, no_speech, compression)


def hum(seconds: float, pitch_hz: float = 120.0) -> Samples:
    """A buzz with harmonics, as a vowel has."""
    at = np.arange(int(seconds * HEARING_RATE_HZ)) / HEARING_RATE_HZ
    harmonics = [np.sin(2 * np.pi * pitch_hz * k * at) / k for k in range(1, 8)]
    return (0.1 * np.sum(harmonics, axis=0)).astype(np.float32)


def hiss(seconds: float) -> Samples:
    noise = np.random.default_rng(1).standard_normal(int(seconds * HEARING_RATE_HZ))
    return (0.05 * noise).astype(np.float32)


# Figures as the model gave them, for recordings.
@pytest.mark.parametrize(
    ("text", "log_probability", "no_speech"),
    [
        ("you", -0.98, 0.93),
        ("you", -0.73, 0.95),
        ("Thank you.", -1.24, 0.82),
        ("Thank you so much.", -0.88, 0.61),
        ("I'm going to go to the bathroom.", -1.80, 0.62),
        ("Oh", -4.02, 0.71),
        ("[Music]", -0.6, 0.7),
    ],
)
def test_inventions_are_refused(text: str, log_probability: float, no_speech: float) -> None:
    assert is_made_up(hearing(text, log_probability, no_speech), hum(1.0))


@pytest.mark.parametrize(
    ("text", "log_probability", "no_speech"),
    [
        ("Yes.", -0.62, 0.20),
        ("No.", -0.61, 0.15),
        ("Stop.", -0.74, 0.04),
        ("Yeah.", -0.76, 0.67),
        ("Okay.", -0.48, 0.44),
        ("Thank you.", -0.3, 0.05),
        ("1 2 3 4 5 6 7 8", -0.26, 0.78),
        ("Regular from Cascus Fine.", -1.42, 0.04),
    ],
)
def test_answers_survive(text: str, log_probability: float, no_speech: float) -> None:
    assert not is_made_up(hearing(text, log_probability, no_speech), hum(1.0))


def test_a_doubtful_word_needs_a_voice() -> None:
    doubtful = hearing("Okay.", -0.7, 0.4)
    assert not is_made_up(doubtful, hum(0.5))
    assert is_made_up(doubtful, hiss(0.5))


def test_only_clear_noise_spares_the_second_hearing() -> None:
    assert is_hopeless(hearing("you", -1.5, 0.9))
    assert not is_hopeless(hearing("Okay", -1.05, 0.26))
    assert hearing("Okay", -1.05, 0.26).doubtful
    assert hearing("la la la la", -0.2, 0.1, compression=3.0).doubtful
    assert hearing(" ".join(["word"] * 12), -0.2, 0.1).doubtful


def test_silence() -> None:
    assert is_silent(np.zeros(0, np.float32))
    assert is_silent(np.full(1600, 1e-4, np.float32))
    assert not is_silent(hiss(0.1))


def test_voice_is_periodic_sound() -> None:
    assert voiced_s(hum(1.0)) > 0.9
    assert voiced_s(hiss(2.0)) == 0.0
    assert voiced_s(np.zeros(16_000, np.float32)) == 0.0
    assert voiced_s(np.zeros(100, np.float32)) == 0.0
