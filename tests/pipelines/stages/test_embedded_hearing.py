"""Detector, judge and recogniser with their real models, on the embedded voice and on noise."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soxr

from pipelines.runtime.ticket import Ticket
from pipelines.stages import turn_smart
from pipelines.stages.asr_whisper import WhisperRecogniser
from pipelines.stages.onnx import run
from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.stages.turn_smart import SmartTurnJudge
from pipelines.stages.vad_silero import SileroDetector, SileroStream
from pipelines.types import (
    DETECTOR_FRAME_SAMPLES,
    HEARING_RATE_HZ,
    RecogniseRequest,
    Samples,
    Transcript,
)
from pipelines.weights import ModelMissing
from tests.pipelines.stages.embedded import (
    FREED_S,
    check,
    freed,
    outputs,
    recording,
    room,
    say,
    started,
)

pytestmark = pytest.mark.models

SPEECH = 0.5  # the detector's own threshold
ORDER = "I would like to book a table for two people tomorrow evening at eight."
PAUSE = np.zeros(3200, np.float32)
SENTENCE = "The train to the north leaves every morning at nine."


def frames(audio: Samples) -> list[Samples]:
    last = len(audio) - DETECTOR_FRAME_SAMPLES
    return [
        audio[at : at + DETECTOR_FRAME_SAMPLES] for at in range(0, last, DETECTOR_FRAME_SAMPLES)
    ]


def noises() -> list[Samples]:
    at = np.arange(3 * HEARING_RATE_HZ) / HEARING_RATE_HZ
    silence = np.zeros(len(at), np.float32)
    hum = (0.05 * np.sin(2 * np.pi * 100 * at)).astype(np.float32)
    clicks = silence.copy()
    clicks[::8000] = 0.8
    return [silence, room(silence), room(silence, 0.05), hum, clicks]


async def probabilities(detector: SileroStream, audio: Samples) -> list[float]:
    return [await detector.step(frame) for frame in frames(audio)]


async def hear(recogniser: WhisperRecogniser, audio: Samples, language: str | None = None) -> str:
    pieces = [audio[at : at + 1600] for at in range(0, len(audio), 1600)]
    found = await outputs(recogniser.open(RecogniseRequest("hear", language=language)), pieces)
    assert [transcript.is_final for transcript in found] == [True]
    return found[0].text


def words(text: str) -> list[str]:
    return re.sub(r"[^a-z ]+", " ", text.lower()).split()


def test_the_detector_hears_speech_and_no_noise() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker, started(SileroDetector()) as stage:
            spoken = await recording(speaker, SENTENCE)
            heard = np.array(await probabilities(stage.open(), spoken)) > SPEECH
            assert heard.mean() > 0.5
            assert not heard[:10].any()  # the pause before
            for noise in noises():
                assert max(await probabilities(stage.open(), noise)) < SPEECH

    check(main)


def test_detectors_are_apart_and_forget() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker, started(SileroDetector()) as stage:
            spoken = frames(await recording(speaker, "Yes, please."))
            alone, first, second = stage.open(), stage.open(), stage.open()
            assert stage.active == 3
            expected = [await alone.step(frame) for frame in spoken]
            noise = noises()[2][:DETECTOR_FRAME_SAMPLES]
            got = []
            for frame in spoken:
                got.append(await first.step(frame))
                await second.step(noise)
            assert got == expected
            first.reset()
            assert [await first.step(frame) for frame in spoken] == expected
            for detector in (alone, first, second, second):
                detector.close()
            assert stage.active == 0
            with pytest.raises(RuntimeError, match="after its end"):
                await first.step(spoken[0])

    check(main)


def test_a_frame_of_another_length_is_refused() -> None:
    async def main() -> None:
        async with started(SileroDetector()) as stage:
            with pytest.raises(ValueError, match="512 samples"):
                await stage.open().step(np.zeros(160, np.float32))

    check(main)


def test_the_judge_tells_an_end_from_a_pause() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker, started(SmartTurnJudge()) as judge:
            whole, cut = [], []
            for sentence in (ORDER, SENTENCE, "What is the capital of France?"):
                said = await recording(speaker, sentence, 0.2)
                whole.append(await judge.ask(said))
                # Broken off in the last words, with a pause after.
                broken = said[: int(0.8 * len(said))]
                cut.append(await judge.ask(np.concatenate([broken, room(PAUSE)])))
            assert np.mean(whole) > 0.5
            assert np.mean(cut) < np.mean(whole) - 0.2
            assert 0 <= await judge.ask(np.zeros(0, np.float32)) <= 1
            long = np.tile(await recording(speaker, SENTENCE), 5)
            assert await judge.ask(long) == pytest.approx(await judge.ask(long[-128_000:]))

    check(main)


def test_a_question_that_is_dropped_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    def run_until_dropped(session: Any, inputs: Any, ticket: Ticket) -> Any:
        dropped = threading.Event()
        ticket.on_abort(dropped.set)
        begun.set()
        assert dropped.wait(FREED_S)
        return run(session, inputs, ticket)

    async def main() -> None:
        async with started(SmartTurnJudge()) as judge:
            with monkeypatch.context() as patch:
                patch.setattr(turn_smart, "run", run_until_dropped)
                asking = asyncio.ensure_future(judge.ask(PAUSE))
                await asyncio.to_thread(begun.wait, FREED_S)
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking
            async with asyncio.timeout(FREED_S / 2):
                assert 0 <= await judge.ask(PAUSE) <= 1

    check(main)


def test_sentences_are_recognised() -> None:
    sentences = (
        SENTENCE,
        "What is the weather like in London today?",
        "Please tell me more about the history of the old bridge.",
    )

    async def main() -> None:
        async with started(PiperSpeaker()) as speaker, started(WhisperRecogniser()) as recogniser:
            for sentence in sentences:
                text = await hear(recogniser, await recording(speaker, sentence))
                expected, got = words(sentence), words(text)
                assert sum(word in got for word in expected) >= 0.8 * len(expected), text
                assert text == text.strip()

    check(main)


def test_partials_come_while_the_speaker_talks() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker, started(WhisperRecogniser()) as recogniser:
            audio = await recording(speaker, SENTENCE)
            stream = recogniser.open(RecogniseRequest("talk", wants_partials=True))
            await stream.push(audio[: len(audio) // 2])
            partial = await anext(stream)
            assert not partial.is_final
            assert "train" in partial.text.lower()
            assert "nine" not in partial.text.lower()
            await stream.push(audio[len(audio) // 2 :])
            await stream.finish()
            last = [transcript async for transcript in stream][-1]
            assert last.is_final
            assert "nine" in last.text.lower() or "9" in last.text

    check(main)


def test_short_answers_survive_and_noise_does_not() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker, started(WhisperRecogniser()) as recogniser:
            for answer in ("Yes.", "No.", "Stop.", "Okay."):
                text = await hear(recogniser, await recording(speaker, answer, 0.3))
                assert words(text) == words(answer)
            for noise in (*noises(), np.zeros(0, np.float32), np.zeros(100, np.float32)):
                assert await hear(recogniser, noise) == ""

    check(main)


def test_long_turns_with_pauses_are_heard_to_the_end() -> None:
    parts = (
        ("Chapter one.", "chapter"),
        (SENTENCE, "train"),
        ("My sister lives in a small house beside the river.", "river"),
        ("Could you tell me what the weather will be like on Friday?", "weather"),
        ("We need four apples, some bread and a bottle of milk.", "bread"),
        ("The meeting was moved to the second floor of the building.", "meeting"),
        ("He plays the piano every evening after dinner.", "piano"),
        ("Thank you, that is all that I wanted to know.", "wanted"),
    )

    async def main() -> None:
        async with started(PiperSpeaker()) as speaker, started(WhisperRecogniser()) as recogniser:
            turn = np.concatenate([await recording(speaker, said, 1.0) for said, _ in parts])
            assert len(turn) > 30 * HEARING_RATE_HZ
            text = words(await hear(recogniser, turn))
            missing = [word for _, word in parts if word not in text]
            assert len(missing) <= 1, (missing, text)
            assert text[-1] == "know"

    check(main)


def test_the_fastest_talkers_are_heard_to_the_end() -> None:
    said = (
        "What is the weather like in London today, and will it rain tomorrow morning before nine, "
        "or should I rather take the umbrella with me?"
    )

    async def main() -> None:
        async with started(PiperSpeaker()) as speaker, started(WhisperRecogniser()) as recogniser:
            deltas = await say(speaker, said, speed=1.7)
            spoken = np.concatenate([delta.samples for delta in deltas])
            heard = soxr.resample(spoken, deltas[0].rate_hz, HEARING_RATE_HZ)
            assert words(await hear(recogniser, heard))[-3:] == ["umbrella", "with", "me"]

    check(main)


def test_an_aborted_recognition_gives_nothing() -> None:
    async def main() -> None:
        async with started(WhisperRecogniser()) as recogniser:
            stream = recogniser.open(RecogniseRequest("gone"))
            await stream.push(noises()[2])
            await stream.finish()
            stream.abort()
            found: list[Transcript] = [output async for output in stream]
            assert found == []
            await freed(recogniser)

    check(main)


def test_a_missing_model_is_told_at_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARLEY_MODELS", str(tmp_path))

    async def main() -> None:
        for stage in (SileroDetector(), SmartTurnJudge(), WhisperRecogniser(), PiperSpeaker()):
            with pytest.raises(ModelMissing, match="parley models fetch embedded"):
                await stage.start(lambda line: None)
            await stage.close()

    check(main)
