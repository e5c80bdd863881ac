"""The configured models: each role's choice becomes a stage, and all of them one cascade."""

from __future__ import annotations

import os

from pipelines.cascade import CascadeOptions, VoiceCascade
from pipelines.courtesy import Courtesy
from pipelines.ports import DetectorStage, Judge, Recogniser, Speaker, Writer
from pipelines.reply import ReplyTiming
from pipelines.runtime.cpu import CpuToken
from realtime.settings import (
    Llama,
    OpenAIWriter,
    Piper,
    Scripted,
    Settings,
    Silero,
    SmartTurn,
    Whisper,
)


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
    return VoiceCascade(
        _detector(stages.detector),
        _judge(stages.judge),
        _recogniser(stages.recogniser, cpu),
        writer,
        speaker,
        CascadeOptions(voices=voices, model=model, timing=ReplyTiming(courtesy=courtesy)),
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


def _recogniser(choice: Whisper | Scripted, cpu: CpuToken) -> Recogniser:
    if isinstance(choice, Scripted):
        from pipelines.fakes.hearing import FakeRecogniser

        return FakeRecogniser()
    from pipelines.stages.asr_whisper import WhisperRecogniser

    return WhisperRecogniser(
        choice.model, choice.path, cpu=cpu, threads=choice.threads, partials=choice.partials
    )


def _writer(
    choice: Llama | OpenAIWriter | Scripted, cpu: CpuToken, instructions: str
) -> tuple[Writer, str]:
    if isinstance(choice, Scripted):
        from pipelines.fakes.writer import FakeWriter

        return FakeWriter(), choice.kind
    if isinstance(choice, OpenAIWriter):
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
        return llm_openai.OpenAIWriter(options), choice.model
    from pipelines.stages.llm_llama import LlamaWriter

    llama = LlamaWriter(
        choice.model,
        choice.path,
        cpu=cpu,
        threads=choice.threads,
        context_tokens=choice.context_tokens,
        instructions=instructions,
    )
    return llama, choice.model


def _speaker(choice: Piper | Scripted, cpu: CpuToken) -> tuple[Speaker, tuple[str, ...]]:
    if isinstance(choice, Scripted):
        from pipelines.fakes.speaker import FakeSpeaker

        return FakeSpeaker(), ("tone",)
    from pipelines.stages.tts_piper import PiperSpeaker

    speaker = PiperSpeaker(choice.path, cpu=cpu, threads=choice.threads)
    return speaker, (choice.voice,)
