"""The measures of recorded sound find what they are there to find."""

from __future__ import annotations

import numpy as np
import pytest

from tests.browser.sound import (
    RATE_HZ,
    Samples,
    first_sound_ms,
    inserted_gaps_ms,
    largest_step_at_edges,
    largest_step_inside,
    pause_after,
)


def noise(ms: int) -> Samples:
    """Nowhere like itself, as speech is."""
    random = np.random.default_rng(7)
    rough = random.normal(0, 0.2, ms * RATE_HZ // 1000)
    return np.convolve(rough, np.ones(8) / 8, mode="same").astype(np.float32)


def nothing(ms: int) -> Samples:
    return np.zeros(ms * RATE_HZ // 1000, np.float32)


def cut(samples: Samples, at_ms: int, with_: Samples) -> Samples:
    at = at_ms * RATE_HZ // 1000
    return np.concatenate([samples[:at], with_, samples[at:]])


@pytest.mark.parametrize("at_ms", [90, 1500])
@pytest.mark.parametrize("gap_ms", [0, 10, 25, 300])
def test_a_gap_is_found_and_a_pause_of_the_speech_is_none(gap_ms: int, at_ms: int) -> None:
    sent = cut(noise(2000), 700, nothing(150))
    heard = np.concatenate([nothing(400), cut(sent, at_ms, nothing(gap_ms)), nothing(200)])
    gaps = inserted_gaps_ms(sent, heard)
    assert max(gaps) == pytest.approx(gap_ms, abs=1)
    assert sum(gaps) == pytest.approx(gap_ms, abs=1)


def test_another_sound_is_not_the_same() -> None:
    with pytest.raises(AssertionError):
        inserted_gaps_ms(noise(1000), noise(3000)[::-1].copy())


def test_a_cut_is_a_click_and_a_fade_is_none() -> None:
    time = np.arange(RATE_HZ) / RATE_HZ
    tone = (0.3 * np.sin(2 * np.pi * 220 * time)).astype(np.float32)
    top = round(RATE_HZ * 40.25 / 220)  # where the tone is at its height
    fade = np.linspace(1, 0, RATE_HZ // 200, dtype=np.float32)
    hard = np.concatenate([nothing(100), tone[:top], nothing(100)])
    faded = tone[:top].copy()
    faded[-len(fade) :] *= fade
    soft = np.concatenate([nothing(100), faded, nothing(100)])
    assert largest_step_at_edges(hard) > 3 * largest_step_inside(hard)
    assert largest_step_at_edges(soft) < 1.2 * largest_step_inside(soft)


def test_onset_and_end_are_found() -> None:
    heard = np.concatenate([nothing(300), noise(500), nothing(100), noise(400), nothing(500)])
    assert first_sound_ms(heard) == 300
    assert pause_after(heard, 350, 300) == pytest.approx(1300, abs=10)
    assert pause_after(heard, 350, 50) == pytest.approx(800, abs=10)
