"""Whose voice a request wants the Higgs voice to copy."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.types import Drawing, Samples, StageError, VoiceSample
from tests.pipelines.stages.higgs_driving import (
    FRAME_SAMPLES,
    Driver,
    arguments,
    file_of,
    heard,
    refusal,
    run,
    sample,
    say,
    speaker,
    wav,
)

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture(scope="module")
def v2_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dataclasses import replace

    import torch

    from pipelines.higgs.codec.config import tiny_codec_config
    from pipelines.higgs.codec.weights import random_codec
    from pipelines.higgs.v2.synthetic import random_parameters, write_checkpoint
    from tests.pipelines.higgs.v2.judge import CONFIG, PUBLISHED

    folder = tmp_path_factory.mktemp("higgs-v2")
    codec = replace(tiny_codec_config(), codebook_size=CONFIG.audio.begin_code)
    parameters = random_parameters(CONFIG, "cpu", torch.float32, seed=2)
    tensors = random_codec(codec).state_dict()
    content = PUBLISHED | codec.section()
    write_checkpoint(folder, content, parameters, is_converted=False, codec=tensors)
    return folder


def test_a_sample_is_spoken_with_as_a_configured_voice_is(checkpoint: Path, tmp_path: Path) -> None:
    async def script(stage: Any) -> None:
        seed = Drawing(seed=3)
        configured = await heard(stage, drawing=seed)
        np.testing.assert_array_equal(configured, await heard(stage, drawing=seed, sample=sample()))
        other = await heard(stage, drawing=seed, sample=sample(hz=400.0))
        untold = await heard(stage, drawing=seed, sample=VoiceSample(sample().data))
        assert len({made.tobytes() for made in (configured, other, untold)}) == 3

    (tmp_path / "anna.wav").write_bytes(sample().data)
    voices = {"anna": {"audio": str(tmp_path / "anna.wav"), "transcript": "so it was"}}
    run(speaker(checkpoint, voices=voices), script)


def test_the_same_bytes_are_encoded_once(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipelines.higgs.assembly import HiggsVoice
    from pipelines.higgs.codec.weights import CodecEncoder

    encoded: list[int] = []
    composed: list[str | None] = []
    encode, compose = CodecEncoder.encode, HiggsVoice.preamble

    def counting_encode(encoder: CodecEncoder, samples: Samples) -> Any:
        encoded.append(len(samples))
        return encode(encoder, samples)

    def counting_compose(voice: HiggsVoice, codes: Any = None, said: str | None = None) -> Any:
        composed.append(said)
        return compose(voice, codes, said)

    monkeypatch.setattr(CodecEncoder, "encode", counting_encode)
    monkeypatch.setattr(HiggsVoice, "preamble", counting_compose)

    async def script(stage: Any) -> None:
        composed.clear()  # what was done to warm the voice up
        encoded.clear()
        wanted = {"drawing": Drawing(seed=1), "sample": sample()}
        sounds = await asyncio.gather(*(heard(stage, "Yes.", **wanted) for _ in range(3)))
        assert (len(encoded), composed) == (1, ["so it was"])
        assert len({made.tobytes() for made in sounds}) == 1
        await say(stage, "Yes.", sample=VoiceSample(sample().data, "and it was"))
        assert (len(encoded), composed[1:]) == (1, ["and it was"])
        await say(stage, "Yes.", sample=sample(hz=312.0))
        assert len(encoded) == 2

    run(speaker(checkpoint), script)


def bad_samples() -> dict[str, tuple[bytes, str]]:
    import soundfile

    broken = np.full(48_000, 0.1)
    broken[100] = np.nan
    return {
        "empty": (b"", "it is empty"),
        "text": (b"It was a dark night. " * 50, "not a sound file"),
        "short": (wav(0.1), "100 ms of sound; a voice needs 300 ms or more"),
        "long": (file_of(np.zeros(24_000 * 600), 8_000, soundfile, "PCM_U8"), "longer than 30 s"),
        "silent": (file_of(np.zeros(48_000), 24_000, soundfile), "silent"),
        "no numbers": (file_of(broken, 24_000, soundfile), "NaN or infinite"),
        "cut off": (wav(1.0)[:40], "cannot be used"),
        "no room": (wav(25.0), r"too long for this server: of 600 positions"),
    }


def test_bad_samples_are_refused_and_leave_those_beside_them_alone(voice: Driver) -> None:
    async def script(stage: Any) -> None:
        wanted = {"drawing": Drawing(seed=2), "sample": sample()}
        alone = await heard(stage, "How are you?", **wanted)
        for data, reason in bad_samples().values():
            healthy, refused = await asyncio.gather(
                heard(stage, "How are you?", **wanted),
                refusal(stage, sample=VoiceSample(data, "words")),
            )
            assert refused.code == "voice_sample_refused" and reason in refused.message
            np.testing.assert_array_equal(alone, healthy)

    voice.run(script)


@pytest.mark.parametrize("transcript", ["", " ", "<|audio|><|tts|>", "\ud800", "\0", "w" * 4_000])
def test_any_transcript_is_taken_or_refused(voice: Driver, transcript: str) -> None:
    async def script(stage: Any) -> None:
        try:
            copied = VoiceSample(sample().data, transcript)
            assert len(await heard(stage, "Yes.", sample=copied))
        except StageError as error:
            assert error.code == "voice_sample_refused"
            assert len(transcript) == 4_000 and "shorten" in error.message

    voice.run(script)


def test_a_transcript_that_nobody_says_in_half_a_minute_is_refused(voice: Driver) -> None:
    async def script(stage: Any) -> None:
        copied = VoiceSample(sample().data, "word " * 100_000)
        refused = await refusal(stage, sample=copied)
        assert refused.message == (
            "The transcript of the voice's sample is longer than 4000 characters; write only what "
            "is said."
        )

    voice.run(script)


def test_v2_copies_a_voice_only_with_its_words(v2_checkpoint: Path) -> None:
    async def script(stage: Any) -> None:
        refused = await refusal(stage, sample=VoiceSample(sample().data))
        assert refused.code == "voice_sample_refused" and "transcript" in refused.message
        seed = Drawing(seed=1, most_frames=30)
        made = [await heard(stage, sample=sample(hz=hz), drawing=seed) for hz in (200, 200, 500)]
        np.testing.assert_array_equal(made[0], made[1])
        assert not np.array_equal(made[0], made[2])
        assert len(made[0]) <= 30 * FRAME_SAMPLES

    run(speaker(v2_checkpoint), script)


def test_a_sample_of_megabytes_reaches_a_worker(checkpoint: Path, voice: Driver) -> None:
    from pipelines.runtime.remote_stage import ProcessStage

    large = VoiceSample(wav(7.0, rate_hz=96_000, channels=2), "so it was")
    assert len(large.data) > 5_000_000
    wanted = {"sample": large, "drawing": Drawing(seed=9, temperature=0.5, most_frames=60)}

    async def script(stage: Any) -> tuple[Samples, StageError]:
        sounds = await asyncio.gather(*(heard(stage, **wanted) for _ in range(2)))
        np.testing.assert_array_equal(sounds[0], sounds[1])
        return sounds[0], await refusal(stage, sample=VoiceSample(b"no sound", "words"))

    factory = "pipelines.stages.factories:create_higgs"
    there, refused_there = run(ProcessStage("tts", factory, arguments(checkpoint)), script)
    here, refused_here = voice.run(script)
    np.testing.assert_array_equal(there, here)
    assert (refused_there.code, refused_there.message) == (refused_here.code, refused_here.message)
