"""Real speech: both engines hear the same with the same weights."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pipelines.runtime.one_shot import OneShotStage
from pipelines.stages import asr_whisper
from pipelines.stages.asr_whisper import MODELS, WhisperRecogniser
from pipelines.stages.asr_whisper_torch import TorchWhisperRecogniser
from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.stages.whisper_ctranslate2 import CTranslate2Engine
from pipelines.stages.whisper_model import WhisperModel
from pipelines.stages.whisper_torch import TorchEngine
from pipelines.types import HEARING_RATE_HZ, RecogniseRequest, Samples, Transcript
from pipelines.weights import resolve_folder
from tests.pipelines.stages.embedded import check, outputs, recording, room, started
from tests.pipelines.stages.whisper_conversion import convert

pytestmark = pytest.mark.models

SENTENCES = (
    "The train to the north leaves every morning at nine.",
    "What is the weather like in London today?",
    "Please tell me more about the history of the old bridge.",
    "Yes.",
)
TIME_TOLERANCE_S = 0.04  # two positions of the encoder
EVIDENCE_TOLERANCE = 2e-3  # of two libraries in whole precision


class PreciseEngine(CTranslate2Engine):
    """Without its rounding to 8 bits, which now and then makes another word."""

    def __init__(self, folder: Path, threads: int) -> None:
        super().__init__(folder, threads)
        self._model = self._library.models.Whisper(
            str(folder), compute_type="float32", intra_threads=threads
        )


@pytest.fixture(autouse=True)
def precise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asr_whisper, "CTranslate2Engine", PreciseEngine)


@pytest.fixture(scope="module", params=["base", "tiny.en"])
def folders(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Path]]:
    """One model in the form of each engine."""
    source = resolve_folder(MODELS[request.param])
    target = convert(source, tmp_path_factory.mktemp("whisper"))
    yield source, target
    shutil.rmtree(target)


@cache
def recordings() -> list[Samples]:
    """The sentences, said once for all tests: they sound alike each time."""

    async def say() -> list[Samples]:
        async with started(PiperSpeaker()) as speaker:
            return [await recording(speaker, sentence) for sentence in SENTENCES]

    return asyncio.run(say())


def noises() -> list[Samples]:
    silence = np.zeros(3 * HEARING_RATE_HZ, np.float32)
    at = np.arange(len(silence)) / HEARING_RATE_HZ
    clicks = silence.copy()
    clicks[::8000] = 0.8
    hum = (0.05 * np.sin(2 * np.pi * 100 * at)).astype(np.float32)
    return [silence, room(silence), room(silence, 0.05), hum, clicks]


async def hear(
    stage: OneShotStage[RecogniseRequest, Samples, Transcript], audio: Samples, prompt: str = ""
) -> str:
    [found] = await outputs(stage.open(RecogniseRequest("hear", prompt=prompt)), [audio])
    assert found.is_final
    return found.text


def test_both_engines_hear_the_same(folders: tuple[Path, Path]) -> None:
    source, target = folders
    theirs = WhisperModel(PreciseEngine(source, os.cpu_count() or 1))
    ours = WhisperModel(TorchEngine(target))

    # The language is told or found, and neither has to do with what is said in it.
    languages = ("en", None, None, None)
    for audio, language in zip(recordings(), languages, strict=True):
        expected, found = (next(model.hear(audio, language)) for model in (theirs, ours))
        assert found.text == expected.text
        assert (found.log_probability, found.no_speech) == pytest.approx(
            (expected.log_probability, expected.no_speech), abs=EVIDENCE_TOLERANCE
        )
        assert found.compression == expected.compression
        placed, likewise = ours.place(found, audio), theirs.place(expected, audio)
        assert [word.text for word in placed] == [word.text for word in likewise] != []
        for word, other in zip(placed, likewise, strict=True):
            assert (word.start_s, word.end_s) == pytest.approx(
                (other.start_s, other.end_s), abs=TIME_TOLERANCE_S
            )


def test_the_stages_write_the_same_and_nothing_over_noise(folders: tuple[Path, Path]) -> None:
    source, target = folders
    name = "tiny.en" if "tiny.en" in source.parts else "base"

    async def main() -> None:
        heard = await asyncio.to_thread(recordings)
        long = np.concatenate([heard[0], heard[1], heard[2]])
        async with (
            started(WhisperRecogniser(name)) as theirs,
            started(TorchWhisperRecogniser(target)) as ours,
        ):
            for audio in (*heard, long):
                assert await hear(ours, audio) == await hear(theirs, audio) != ""
            for noise in noises():
                assert await hear(ours, noise) == ""

    check(main)


def test_likely_words_are_preferred(folders: tuple[Path, Path]) -> None:
    _, target = folders
    plain, likely = "My name is Jon Smith and I live here.", "Glossary: Jon Smyth, Mr Smyth, Smyth."

    async def main() -> None:
        async with (
            started(PiperSpeaker()) as speaker,
            started(TorchWhisperRecogniser(target)) as ours,
        ):
            audio = await recording(speaker, plain)
            assert "Smyth" not in await hear(ours, audio)
            assert "Smyth" in await hear(ours, audio, likely)

    check(main)
