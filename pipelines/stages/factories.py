"""Stages from plain values, texts and numbers: here and in a worker process they are made alike.

A worker process is told the name of one of these functions and its values. Stages are imported when
they are wanted: their packages are large.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipelines.ports import Recogniser, Speaker, Writer
from pipelines.runtime.cpu import CpuToken
from pipelines.stages.packages import require_packages
from pipelines.stages.torch_device import choose_device
from pipelines.weights import folder_of


def create_whisper(
    *,
    model: str,
    path: str | None,
    threads: int,
    partials: bool,
    cpu: CpuToken | None = None,
) -> Recogniser:
    from pipelines.stages.asr_whisper import WhisperRecogniser

    return WhisperRecogniser(model, _path(path), cpu=cpu, threads=threads, partials=partials)


def create_whisper_torch(
    *,
    model: str,
    device: str,
    gpu: int,
    memory_share: float | None,
    partials: bool,
    cpu: CpuToken | None = None,
) -> Recogniser:
    """model: the path of a folder, or `owner/name` in the store. device: as of `create_higgs`.

    On a GPU this process is held to its share of it, and waits for nobody's turn on the CPU.
    """
    require_packages("whisper_torch")
    from pipelines.stages.asr_whisper_torch import TorchWhisperRecogniser

    place = choose_device(device, gpu)
    return TorchWhisperRecogniser(
        folder_of(model),
        place,
        memory_share=memory_share,
        cpu=cpu if place == "cpu" else None,
        partials=partials,
    )


def create_llama(
    *,
    model: str,
    path: str | None,
    threads: int,
    context_tokens: int,
    instructions: str,
    cpu: CpuToken | None = None,
) -> Writer:
    """In a process of its own it has nobody to give way to but its own requests."""
    from pipelines.stages.llm_llama import LlamaWriter

    return LlamaWriter(
        model,
        _path(path),
        cpu=cpu or CpuToken(),
        threads=threads,
        context_tokens=context_tokens,
        instructions=instructions,
    )


def create_sglang(
    *,
    model: str,
    memory_share: float,
    context_tokens: int,
    gpu: int,
    running: int,
    graph_batch: int | None,
    attention_backend: str | None,
    sampling_backend: str | None,
    load_format: str,
    temperature: float,
    top_p: float,
    top_k: int,
    instructions: str,
) -> Writer:
    """model: the path of a folder, or `owner/name` in the store."""
    from pipelines.stages.llm_sglang import SGLangWriter
    from pipelines.stages.llm_sglang_arguments import SGLangOptions

    options = SGLangOptions(
        model=folder_of(model),
        memory_share=memory_share,
        context_tokens=context_tokens,
        gpu=gpu,
        running=running,
        graph_batch=graph_batch,
        attention=attention_backend,
        sampling=sampling_backend,
        load_format=load_format,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
    )
    return SGLangWriter(options, instructions=instructions)


def create_piper(*, path: str | None, threads: int, cpu: CpuToken | None = None) -> Speaker:
    from pipelines.stages.tts_piper import PiperSpeaker

    return PiperSpeaker(_path(path), cpu=cpu, threads=threads)


def create_higgs(
    *,
    model: str,
    voices: Mapping[str, Mapping[str, str | None]],
    slots: int,
    positions: int,
    device: str,
    gpu: int,
    memory_share: float | None,
    seed: int | None,
    temperature: float | None,
    top_p: float | None,
    top_k: int | None,
) -> Speaker:
    """model: the path of a folder, or `owner/name` in the store.

    voices: `audio` (a path) and, where it is known, `transcript` of each. device: cpu, cuda, or
    auto: cuda if it is there. On a GPU this process is held to its share of it, from when it loads.
    """
    require_packages("higgs")
    from pipelines.stages.higgs_voices import VoiceFile
    from pipelines.stages.tts_higgs import HiggsSpeaker, HiggsSpeakerOptions

    return HiggsSpeaker(
        HiggsSpeakerOptions(
            model=folder_of(model),
            device=device,
            gpu=gpu,
            memory_share=memory_share,
            slots=slots,
            positions=positions,
            voices=tuple(
                VoiceFile(name, Path(str(voice["audio"])).expanduser(), voice["transcript"])
                for name, voice in voices.items()
            ),
            seed=seed,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
        )
    )


def _path(path: str | None) -> Path | None:
    return None if path is None else Path(path)
