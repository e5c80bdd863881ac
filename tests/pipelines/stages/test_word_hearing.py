"""The embedded recogniser tells when each word was said, in which language, and translates."""

from __future__ import annotations

import re

import numpy as np
import pytest
import soxr

from pipelines.runtime.message_codec import STAGE_CODEC
from pipelines.runtime.one_shot import OneShotStage
from pipelines.stages.asr_whisper import WhisperRecogniser
from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.types import (
    ANY_LANGUAGE,
    HEARING_RATE_HZ,
    RecogniseRequest,
    Samples,
    StageError,
    Transcript,
)
from tests.pipelines.stages.embedded import check, outputs, recording, room, say, started

pytestmark = pytest.mark.models

TEXT = (
    "The train to the north leaves every morning at nine. My sister lives in a small house "
    "beside the river. We need four apples, some bread and a bottle of milk."
)
MEDIAN_ERROR_S = 0.15
BEFORE_S = 0.5


async def spoken() -> tuple[Samples, dict[str, float]]:
    """The text over the noise of a room, and where the voice ended each word that comes once."""
    async with started(PiperSpeaker()) as speaker:
        deltas = await say(speaker, TEXT)
    ends_s: dict[str, float] = {}
    told: list[str] = []
    samples = text_end = 0
    for delta in deltas:
        for word in delta.words:
            if word.text_end > text_end:  # a pause ends no word
                said = plain(TEXT[text_end : word.text_end])
                ends_s[said] = BEFORE_S + (samples + word.samples) / delta.rate_hz
                told.append(said)
                text_end = word.text_end
        samples += len(delta.samples)
    audio = np.concatenate([delta.samples for delta in deltas])
    heard = soxr.resample(audio, deltas[0].rate_hz, HEARING_RATE_HZ).astype(np.float32)
    edge = np.zeros(int(BEFORE_S * HEARING_RATE_HZ), np.float32)
    once = {word: end_s for word, end_s in ends_s.items() if told.count(word) == 1}
    return room(np.concatenate([edge, heard, edge])), once


def plain(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())


async def hear(
    recogniser: OneShotStage[RecogniseRequest, Samples, Transcript],
    audio: Samples,
    **wanted: object,
) -> Transcript:
    request = RecogniseRequest("hear", **wanted)  # type: ignore[arg-type]
    [found] = await outputs(recogniser.open(request), [audio])
    return found


def errors_s(found: Transcript, ends_s: dict[str, float], from_s: float) -> list[float]:
    words = {plain(word.text): word.end_s for word in found.words if word.start_s >= from_s}
    return [abs(words[word] - from_s - end_s) for word, end_s in ends_s.items() if word in words]


def test_words_are_placed_where_the_voice_said_them() -> None:
    async def main() -> None:
        audio, ends_s = await spoken()
        async with started(WhisperRecogniser()) as recogniser:
            found = await hear(recogniser, audio, wants_words=True)
            assert " ".join(word.text for word in found.words) == found.text
            assert STAGE_CODEC.decode(STAGE_CODEC.encode(found)) == found  # from a worker, too
            errors = errors_s(found, ends_s, 0.0)
            assert len(errors) >= 0.8 * len(ends_s)
            assert np.median(errors) < MEDIAN_ERROR_S
            starts = [word.start_s for word in found.words]
            assert starts == sorted(starts)
            assert all(word.end_s > word.start_s for word in found.words)

    check(main)


def test_times_are_those_of_the_audio_whose_pauses_are_skipped() -> None:
    async def main() -> None:
        audio, ends_s = await spoken()
        pause = room(np.zeros(4 * HEARING_RATE_HZ, np.float32))
        async with started(WhisperRecogniser()) as recogniser:
            long = np.concatenate([audio, pause, audio, pause, pause, audio])
            found = await hear(recogniser, long, wants_words=True)
            last_s = (len(long) - len(audio)) / HEARING_RATE_HZ
            errors = errors_s(found, ends_s, last_s)
            assert len(errors) >= 0.8 * len(ends_s)
            assert np.median(errors) < MEDIAN_ERROR_S
            assert found.words[-1].end_s < len(long) / HEARING_RATE_HZ

    check(main)


def test_words_are_told_only_if_they_are_wanted() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker, started(WhisperRecogniser()) as recogniser:
            audio = await recording(speaker, "What is the weather like?")
            plainly = await hear(recogniser, audio)
            timed = await hear(recogniser, audio, wants_words=True)
            assert (plainly.words, plainly.text) == ((), timed.text)
            assert len(timed.words) == len(timed.text.split())
            silence = np.zeros(HEARING_RATE_HZ, np.float32)
            assert await hear(recogniser, silence, wants_words=True) == Transcript("", True)

    check(main)


def test_the_language_is_told() -> None:
    async def main() -> None:
        async with (
            started(PiperSpeaker()) as speaker,
            started(WhisperRecogniser(language="de")) as recogniser,
        ):
            audio = await recording(speaker, TEXT)
            assert (await hear(recogniser, audio)).language == "de"
            assert (await hear(recogniser, audio, language=ANY_LANGUAGE)).language == "en"

    check(main)


def test_translation_needs_a_model_of_many_languages() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker:
            audio = await recording(speaker, TEXT)
        async with started(WhisperRecogniser()) as recogniser:
            found = await hear(recogniser, audio, translates=True, language=ANY_LANGUAGE)
            assert "sister" in found.text.lower()
        async with started(WhisperRecogniser("tiny.en")) as recogniser:
            with pytest.raises(StageError) as refused:
                await hear(recogniser, audio, translates=True)
            assert refused.value.code == "translation_unsupported"
            assert (await hear(recogniser, audio)).language == "en"

    check(main)
