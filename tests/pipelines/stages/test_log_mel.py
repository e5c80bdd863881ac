"""The spectrogram and the vocabulary that Whisper was trained with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipelines.stages.mel import BANDS, HOP_SAMPLES, RANGE_DECADES, log_mel
from pipelines.stages.whisper_vocabulary import Vocabulary
from pipelines.types import HEARING_RATE_HZ, Samples


def tone(pitch_hz: float, level: float = 0.5) -> Samples:
    at = np.arange(HEARING_RATE_HZ) / HEARING_RATE_HZ
    return (level * np.sin(2 * np.pi * pitch_hz * at)).astype(np.float32)


def slaney_band(pitch_hz: float) -> float:
    """The band around a pitch, from the definition of the scale."""

    def mels(hz: float) -> float:
        return 3 * hz / 200 if hz < 1000 else 15 + 27 * np.log(hz / 1000) / np.log(6.4)

    return mels(pitch_hz) / mels(HEARING_RATE_HZ / 2) * (BANDS + 1) - 1


@pytest.mark.parametrize("pitch_hz", [200, 440, 1000, 2500, 6000])
def test_a_tone_is_in_its_band(pitch_hz: float) -> None:
    features = log_mel(tone(pitch_hz))
    assert features.shape == (BANDS, HEARING_RATE_HZ // HOP_SAMPLES)
    assert features.dtype == np.float32
    loudest = features[:, 10:-10].mean(axis=1).argmax()
    assert abs(loudest - slaney_band(pitch_hz)) < 1


def test_levels_are_decades_over_four() -> None:
    loud, quiet = log_mel(tone(1000)), log_mel(tone(1000, 0.05))
    assert (loud.max() - quiet.max()) * 4 == pytest.approx(2.0, abs=1e-3)
    assert (loud.max() - loud.min()) * 4 <= RANGE_DECADES + 1e-4


def test_silence_is_flat() -> None:
    features = log_mel(np.zeros(4800, np.float32))
    assert np.ptp(features) == 0
    assert features.max() == pytest.approx(-1.5)


@pytest.fixture
def vocabulary(tmp_path: Path) -> Vocabulary:
    """All bytes, a few longer tokens, and markers."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    tokens = [chr(byte) for byte in plain] + [chr(256 + n) for n in range(len(others))]
    tokens += ["he", "ll", "hell", "hello", "Ġw", "or", "Ġwor", "<|endoftext|>", "<|en|>"]
    path = tmp_path / "vocabulary.txt"
    path.write_text("\n".join(tokens), encoding="utf-8")
    return Vocabulary.of_lines(path)


def test_text_goes_there_and_back(vocabulary: Vocabulary) -> None:
    for text in ("hello world", " naïve – 42's", "日本語 😀", ""):
        assert vocabulary.decode(vocabulary.encode(text)) == text


def test_the_longest_joins_are_made(vocabulary: Vocabulary) -> None:
    assert len(vocabulary.encode("hello wor")) == 2
    assert len(vocabulary.encode("hellox")) == 2


def test_markers_are_known_and_left_out(vocabulary: Vocabulary) -> None:
    marker = vocabulary.special("en")
    assert marker is not None
    assert vocabulary.special("de") is None
    assert vocabulary.decode([*vocabulary.encode("hello"), marker]) == "hello"
