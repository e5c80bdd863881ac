"""Factories: plain values become the options of stages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.runtime.cpu import CpuToken
from pipelines.stages import asr_whisper_torch, factories, llm_sglang, tts_higgs
from pipelines.stages.higgs_voices import VoiceFile
from pipelines.stages.llm_sglang import SGLangWriter
from pipelines.stages.llm_sglang_arguments import SGLangOptions
from pipelines.stages.tts_higgs import HiggsSpeakerOptions
from pipelines.types import StageError

HIGGS: dict[str, Any] = {
    "model": "maker/voice",
    "voices": {
        "anna": {"audio": "a.wav", "transcript": "Hi."},
        "zoe": {"audio": "z.wav", "transcript": None},
    },
    "slots": 4,
    "positions": 512,
    "device": "cpu",
    "gpu": 1,
    "memory_share": 0.4,
    "seed": 7,
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 20,
}
SGLANG: dict[str, Any] = {
    "model": "maker/words",
    "memory_share": 0.4,
    "context_tokens": 4096,
    "gpu": 1,
    "running": 8,
    "graph_batch": 4,
    "attention_backend": "fa3",
    "sampling_backend": None,
    "load_format": "dummy",
    "temperature": 0.6,
    "top_p": 0.7,
    "top_k": 9,
    "instructions": "Be brief.",
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARLEY_MODELS", str(tmp_path))
    return tmp_path


def test_a_higgs_voice_of_plain_values(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[HiggsSpeakerOptions] = []
    monkeypatch.setattr(tts_higgs, "HiggsSpeaker", made.append)
    factories.create_higgs(**HIGGS)
    assert made[0] == HiggsSpeakerOptions(
        model=store / "maker" / "voice",
        device="cpu",
        gpu=1,
        memory_share=0.4,
        slots=4,
        positions=512,
        voices=(VoiceFile("anna", Path("a.wav"), "Hi."), VoiceFile("zoe", Path("z.wav"), None)),
        seed=7,
        temperature=0.5,
        top_p=0.9,
        top_k=20,
    )


def test_a_recogniser_on_a_gpu_has_its_share_and_waits_for_no_cpu(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Any, ...]] = []

    def make(folder: Path, device: str, **others: Any) -> None:
        assert others["memory_share"] == 0.1
        made.append((folder, device, others["cpu"], others["partials"]))

    monkeypatch.setattr(asr_whisper_torch, "TorchWhisperRecogniser", make)
    token = CpuToken()
    values: dict[str, Any] = {"model": "maker/ears", "gpu": 1, "memory_share": 0.1}
    factories.create_whisper_torch(**values, device="cuda", partials=True, cpu=token)
    factories.create_whisper_torch(**values, device="cpu", partials=False, cpu=token)
    folder = store / "maker" / "ears"
    assert made == [(folder, "cuda:1", None, True), (folder, "cpu", token, False)]


def test_an_sglang_writer_of_plain_values(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[SGLangOptions, str]] = []

    def make(options: SGLangOptions, *, instructions: str) -> None:
        made.append((options, instructions))

    assert isinstance(factories.create_sglang(**SGLANG), SGLangWriter)
    monkeypatch.setattr(llm_sglang, "SGLangWriter", make)
    factories.create_sglang(**SGLANG)
    [(options, instructions)] = made
    assert instructions == "Be brief."
    assert options == SGLangOptions(
        model=store / "maker" / "words",
        context_tokens=4096,
        memory_share=0.4,
        gpu=1,
        running=8,
        graph_batch=4,
        attention="fa3",
        load_format="dummy",
        temperature=0.6,
        top_p=0.7,
        top_k=9,
    )


@pytest.mark.parametrize("values", [HIGGS, {**HIGGS, "device": "auto"}])
def test_packages_that_are_missing_are_named(
    store: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any]
) -> None:
    for name in ("torch", "tokenizers"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(StageError, match=r"higgs needs torch, tokenizers, .*higgs,sglang"):
        factories.create_higgs(**values)
    with pytest.raises(StageError, match=r"whisper_torch needs torch, tokenizers, "):
        factories.create_whisper_torch(
            model="maker/ears", device="auto", gpu=0, memory_share=None, partials=True
        )
