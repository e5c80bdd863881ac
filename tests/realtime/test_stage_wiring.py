"""Configured stages: made here or in a worker process from the same plain values."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.fakes.hearing import FakeRecogniser
from pipelines.reply import ReplyTiming
from pipelines.runtime.remote_stage import ProcessStage
from pipelines.stages import factories, torch_device
from pipelines.stages.llm_sglang_engine import CLOSE_TIMEOUT_S
from pipelines.types import StageError
from pipelines.weights import ModelMissing
from realtime.settings import Settings
from realtime.stage_settings import (
    Higgs,
    Llama,
    Piper,
    Scripted,
    SGLang,
    Stages,
    VoiceSample,
    Whisper,
    WhisperTorch,
)
from realtime.stages import create_cascade
from tests.pipelines.test_weights_repository import put

SCRIPTED = Scripted(kind="scripted")
QUIET: dict[str, Any] = {"detector": SCRIPTED, "judge": SCRIPTED, "recogniser": SCRIPTED}
CARD_BYTES = 80 << 30


def parts(**choices: Any) -> dict[str, Any]:
    """The stages of a cascade by role."""
    cascade = create_cascade(Settings(stages=Stages(**{**QUIET, **choices})))
    return {role: getattr(cascade, f"_{role}") for role in ("recogniser", "writer", "speaker")}


def made_by(stage: Any) -> tuple[str, dict[str, Any]]:
    """The factory of a worker, and what it is called with."""
    assert isinstance(stage, ProcessStage)
    module, _, function = stage._factory.partition(":")
    assert module == factories.__name__
    json.dumps(stage._arguments)  # plain values
    return function, stage._arguments


@pytest.mark.parametrize(
    ("role", "choice", "name", "function"),
    [
        ("recogniser", Whisper(kind="whisper", process="worker"), "asr", "create_whisper"),
        ("recogniser", WhisperTorch(kind="whisper_torch"), "asr", "create_whisper_torch"),
        ("writer", Llama(kind="llama", process="worker"), "llm", "create_llama"),
        ("writer", SGLang(kind="sglang", memory_share=0.4), "llm", "create_sglang"),
        ("speaker", Piper(kind="piper", process="worker"), "tts", "create_piper"),
        ("speaker", Higgs(kind="higgs"), "tts", "create_higgs"),
    ],
)
def test_a_worker_is_told_what_its_factory_takes(
    role: str, choice: Any, name: str, function: str
) -> None:
    stage = parts(**{role: choice})[role]
    assert stage.name == name
    found, values = made_by(stage)
    assert found == function
    factory = getattr(importlib.import_module(factories.__name__), found)
    inspect.signature(factory).bind(**values)


@pytest.mark.parametrize(
    ("choice", "copies"),
    [(SCRIPTED, True), (Higgs(kind="higgs"), True), (Piper(kind="piper"), False)],
)
def test_the_cascade_tells_whether_its_voice_copies_others(choice: Any, copies: bool) -> None:
    stages = Stages(**{**QUIET, "writer": SCRIPTED, "speaker": choice})
    assert create_cascade(Settings(stages=stages)).copies_voices is copies


def test_a_gpu_stage_has_the_time_that_it_needs() -> None:
    writer = parts(writer=SGLang(kind="sglang", memory_share=0.4))["writer"]
    assert writer._options.close_timeout_s > CLOSE_TIMEOUT_S
    speaker = parts(speaker=Higgs(kind="higgs"))["speaker"]
    assert 20 <= speaker._options.hang_timeout_s < ReplyTiming().stall_timeout_ms / 1000


def test_an_inline_voice_touches_no_gpu_before_the_gpus_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def touch(*_: object) -> None:
        raise AssertionError("the GPU was touched")

    monkeypatch.setattr(torch_device, "enforce_share", touch)
    monkeypatch.setattr("torch.cuda.is_available", touch)
    for device in ("cuda", "auto"):
        voice = Higgs(kind="higgs", process="inline", device=device, memory_share=0.5)
        assert not isinstance(parts(speaker=voice)["speaker"], ProcessStage)
    ears = WhisperTorch(kind="whisper_torch", process="inline", device="cuda", memory_share=0.1)
    assert not isinstance(parts(recogniser=ears)["recogniser"], ProcessStage)


def test_inline_stages_are_made_of_the_same_values() -> None:
    found = parts(
        recogniser=Whisper(kind="whisper"), writer=Llama(kind="llama"), speaker=Piper(kind="piper")
    )
    kinds = {role: type(stage).__name__ for role, stage in found.items()}
    assert kinds == {
        "recogniser": "WhisperRecogniser",
        "writer": "LlamaWriter",
        "speaker": "PiperSpeaker",
    }


def test_values_reach_the_factory(tmp_path: Path) -> None:
    sample = VoiceSample(audio=tmp_path / "a.wav", transcript="Hello.")
    found = parts(
        recogniser=WhisperTorch(kind="whisper_torch", device="cuda", gpu=1, memory_share=0.1),
        writer=SGLang(kind="sglang", memory_share=0.4, model="a/b", attention_backend="fa3"),
        speaker=Higgs(kind="higgs", voices={"anna": sample}, device="cpu", seed=7),
    )
    _, recogniser = made_by(found["recogniser"])
    assert (recogniser["device"], recogniser["gpu"]) == ("cuda", 1)
    assert recogniser["memory_share"] == 0.1
    _, writer = made_by(found["writer"])
    assert writer["attention_backend"] == "fa3" and writer["instructions"].startswith("You are a")
    _, speaker = made_by(found["speaker"])
    voice = {"audio": str(tmp_path / "a.wav"), "transcript": "Hello."}
    assert speaker["voices"] == {"anna": voice} and speaker["seed"] == 7
    settings = Settings(
        stages=Stages(
            writer=SGLang(kind="sglang", memory_share=0.4, model="a/b"),
            speaker=Higgs(kind="higgs", voices={"anna": sample}),
        )
    )
    cascade = create_cascade(settings)
    assert cascade.voices == ("anna",) and cascade.model == "b"


def test_a_path_of_a_piper_or_whisper_is_told_as_text(tmp_path: Path) -> None:
    found = parts(speaker=Piper(kind="piper", path=tmp_path / "v.onnx", process="worker"))
    assert made_by(found["speaker"])[1]["path"] == str(tmp_path / "v.onnx")


def test_nothing_starts_where_the_gpus_have_no_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = str(put(tmp_path))
    monkeypatch.setattr("realtime.stage_checks.gpu_memory_bytes", lambda: (CARD_BYTES,))
    chosen = Stages(
        **QUIET,
        writer=SGLang(kind="sglang", memory_share=0.7, model=model),
        speaker=Higgs(kind="higgs", memory_share=0.5, model=model),
    )
    cascade = create_cascade(Settings(stages=chosen))
    told: list[str] = []

    async def main() -> None:
        with pytest.raises(StageError, match="promised more than once"):
            await cascade.start(told.append)

    asyncio.run(main())
    assert told == []


def test_nothing_starts_where_a_model_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARLEY_MODELS", str(tmp_path))
    chosen = SGLang(kind="sglang", memory_share=0.4, model="maker/none")
    cascade = create_cascade(Settings(stages=Stages(**QUIET, writer=chosen, speaker=SCRIPTED)))
    assert isinstance(cascade._recogniser, FakeRecogniser)

    async def main() -> None:
        with pytest.raises(ModelMissing, match="maker/none is not in the store"):
            await cascade.start(lambda line: None)

    asyncio.run(main())


def test_nothing_starts_where_a_recording_of_a_voice_cannot_be_used(tmp_path: Path) -> None:
    model = put(tmp_path / "voice")
    voices = {"anna": VoiceSample(audio=tmp_path / "anna.wav")}
    chosen = Higgs(kind="higgs", model=str(model), device="cpu", voices=voices)
    cascade = create_cascade(Settings(stages=Stages(**QUIET, writer=SCRIPTED, speaker=chosen)))
    told: list[str] = []

    async def main() -> None:
        with pytest.raises(StageError, match=rf"voices\.anna\.audio: there is no file {tmp_path}"):
            await cascade.start(told.append)

    asyncio.run(main())
    assert told == []
