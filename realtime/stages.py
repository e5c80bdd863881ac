"""The configured models: each role's choice becomes a stage, and all of them one cascade."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipelines.cascade import CascadeOptions, VoiceCascade
from pipelines.courtesy import Courtesy
from pipelines.ports import DetectorStage, Judge, Progress, Recogniser, Speaker, Writer
from pipelines.reply import ReplyTiming
from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.remote_stage import ProcessStage
from pipelines.runtime.worker_options import WorkerOptions
from pipelines.stages import factories
from realtime.settings import Settings
from realtime.stage_checks import check_gpus, check_models, check_voices
from realtime.stage_settings import (
    Higgs,
    Llama,
    OpenAIWriter,
    Piper,
    Scripted,
    SGLang,
    Silero,
    SmartTurn,
    Stages,
    Whisper,
    WhisperTorch,
)

FACTORIES = factories.__name__
# A GPU model reads gigabytes, and compiles and captures what it runs, at its first start for long.
# While it does, or waits for the device, Python may stand still for long without being stuck.
ON_A_GPU = WorkerOptions(start_timeout_s=1800.0, hang_timeout_s=25.0, close_timeout_s=30.0)
# SGLang's engine waits a minute for processes of its own.
SGLANG = replace(ON_A_GPU, close_timeout_s=80.0)
# What of a choice is no matter of its stage's.
PLACEMENT = {"kind", "process"}


class ConfiguredCascade(VoiceCascade):
    """Looks for models, voices and room on the GPUs before the first stage starts."""

    def __init__(self, choices: Stages, *parts: Any) -> None:
        super().__init__(*parts)
        self._choices = choices

    async def start(self, progress: Progress) -> None:
        await asyncio.to_thread(check_models, self._choices)
        await asyncio.to_thread(check_voices, self._choices)
        await asyncio.to_thread(check_gpus, self._choices)
        await super().start(progress)


def create_cascade(settings: Settings) -> VoiceCascade:
    """The configured stages, not started yet. Those of this process share one token of CPU."""
    stages = settings.stages
    cpu = CpuToken()
    speaker, voices = _speaker(stages.speaker, cpu)
    writer, model = _writer(stages.writer, cpu, settings.session.instructions)
    courtesy = Courtesy(
        filler_after_ms=settings.filler_after_ms,
        fillers=settings.reply.fillers,
        apology=settings.reply.apology,
        empty=settings.reply.empty,
    )
    return ConfiguredCascade(
        stages,
        _detector(stages.detector),
        _judge(stages.judge),
        _recogniser(stages.recogniser, cpu),
        writer,
        speaker,
        CascadeOptions(
            voices=voices,
            model=model,
            timing=ReplyTiming(courtesy=courtesy),
            copies_voices=isinstance(stages.speaker, Higgs | Scripted),
        ),
    )


# Stages are imported when they are wanted: their packages are large.


def _detector(choice: Silero | Scripted) -> DetectorStage:
    if isinstance(choice, Scripted):
        from pipelines.fakes.hearing import FakeDetectorStage

        return FakeDetectorStage()
    from pipelines.stages.vad_silero import SileroDetector

    return SileroDetector(choice.path)


def _judge(choice: SmartTurn | Scripted) -> Judge:
    if isinstance(choice, Scripted):
        from pipelines.fakes.hearing import FakeJudge

        return FakeJudge()
    from pipelines.stages.turn_smart import SmartTurnJudge

    return SmartTurnJudge(choice.path)


def _recogniser(choice: Whisper | WhisperTorch | Scripted, cpu: CpuToken) -> Recogniser:
    match choice:
        case Scripted():
            from pipelines.fakes.hearing import FakeRecogniser

            return FakeRecogniser()
        case WhisperTorch():
            values = choice.model_dump(exclude=PLACEMENT)
            if choice.process == "worker":
                return _worker("asr", "create_whisper_torch", values, ON_A_GPU)
            return factories.create_whisper_torch(**values, cpu=cpu)
        case Whisper():
            values = choice.model_dump(mode="json", exclude=PLACEMENT)
            if choice.process == "worker":
                return _worker("asr", "create_whisper", values)
            return factories.create_whisper(**values, cpu=cpu)


def _writer(
    choice: Llama | SGLang | OpenAIWriter | Scripted, cpu: CpuToken, instructions: str
) -> tuple[Writer, str]:
    match choice:
        case Scripted():
            from pipelines.fakes.writer import FakeWriter

            return FakeWriter(), choice.kind
        case OpenAIWriter():
            return _openai_writer(choice), choice.model
        case SGLang():
            values = choice.model_dump(exclude=PLACEMENT) | {"instructions": instructions}
            return _worker("llm", "create_sglang", values, SGLANG), Path(choice.model).name
        case Llama():
            values = choice.model_dump(mode="json", exclude=PLACEMENT)
            values["instructions"] = instructions
            if choice.process == "worker":
                return _worker("llm", "create_llama", values), choice.model
            return factories.create_llama(**values, cpu=cpu), choice.model


def _openai_writer(choice: OpenAIWriter) -> Writer:
    from pipelines.stages import llm_openai

    key = choice.key or (os.environ.get(choice.key_env) if choice.key_env else None)
    options = llm_openai.OpenAIWriterOptions(
        base_url=choice.url,
        model=choice.model,
        api_key=key or None,
        extra_body={} if choice.temperature is None else {"temperature": choice.temperature},
        first_token_timeout_ms=choice.first_token_timeout_ms,
        token_timeout_ms=choice.token_timeout_ms,
    )
    return llm_openai.OpenAIWriter(options)


def _speaker(choice: Piper | Higgs | Scripted, cpu: CpuToken) -> tuple[Speaker, tuple[str, ...]]:
    match choice:
        case Scripted():
            from pipelines.fakes.speaker import FakeSpeaker

            return FakeSpeaker(), ("tone",)
        case Higgs():
            values = choice.model_dump(mode="json", exclude=PLACEMENT)
            if choice.process == "worker":
                return _worker("tts", "create_higgs", values, ON_A_GPU), choice.voice_names
            return factories.create_higgs(**values), choice.voice_names
        case Piper():
            values = {"path": _text(choice.path), "threads": choice.threads}
            if choice.process == "worker":
                return _worker("tts", "create_piper", values), (choice.voice,)
            return factories.create_piper(**values, cpu=cpu), (choice.voice,)


def _worker(
    name: str,
    function: str,
    values: Mapping[str, object],
    options: WorkerOptions | None = None,
) -> ProcessStage[Any, Any, Any]:
    """A stage that its factory makes in a process of its own."""
    return ProcessStage(name, f"{FACTORIES}:{function}", values, options)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
