"""Which model fills each role, and where it runs: the `stages` of a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Threads = Annotated[int, Field(ge=1, le=256)]
Card = Annotated[int, Field(ge=0, le=63)]  # a GPU's number among the visible ones
Share = Annotated[float, Field(gt=0, le=1)]  # of a whole card's memory
Temperature = Annotated[float, Field(ge=0, le=2)]
ModelName = Annotated[str, Field(min_length=1, max_length=1000)]

# inline: a thread of the server; worker: a process that may crash without taking the server along.
Place = Literal["inline", "worker"]

LlamaModel = Literal["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "smollm2-135m"]
WHISPER_TURBO = "openai/whisper-large-v3-turbo"
HIGGS = "bosonai/higgs-audio-v3-tts-4b"
MADE_UP_VOICE = "default"  # what the model speaks with where no voice is given


class Section(BaseModel):
    """A part of the configuration. Unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Scripted(Section):
    """A stand-in with exact timing and no model, for demos and tests of the server itself."""

    kind: Literal["scripted"]


class Silero(Section):
    """Voice activity, Silero VAD on ONNX Runtime."""

    kind: Literal["silero"]
    path: Path | None = None  # null: the pinned model of the local store


class SmartTurn(Section):
    """End of turn, Smart Turn on ONNX Runtime."""

    kind: Literal["smart_turn"]
    path: Path | None = None


class Whisper(Section):
    """Speech to text on the CPU, Whisper on CTranslate2.

    path: a folder with model.bin and vocabulary.txt.
    partials: transcribe while the user still talks.
    """

    kind: Literal["whisper"]
    model: Literal["base", "tiny.en"] = "base"
    path: Path | None = None
    threads: Threads = 2
    partials: bool = True
    process: Place = "inline"


class WhisperTorch(Section):
    """Speech to text on a GPU, Whisper on PyTorch.

    model: the folder of a checkpoint, or its repository (`owner/name`) in the model store.
    partials: transcribe while the user still talks.
    device: auto takes a GPU where there is one. memory_share: of that card.
    """

    kind: Literal["whisper_torch"]
    model: ModelName = WHISPER_TURBO
    partials: bool = True
    device: Literal["auto", "cpu", "cuda"] = "auto"
    gpu: Card = 0
    memory_share: Share | None = None
    process: Place = "worker"

    @property
    def card(self) -> int | None:
        """The card that it may run on."""
        return None if self.device == "cpu" else self.gpu


class Llama(Section):
    """Text, llama.cpp in this process. path: a GGUF file."""

    kind: Literal["llama"]
    model: LlamaModel = "qwen2.5-coder-0.5b"
    path: Path | None = None
    threads: Threads = 2
    context_tokens: Annotated[int, Field(ge=1024, le=131_072)] = 4096
    process: Place = "inline"


class OpenAIWriter(Section):
    """Text, any OpenAI-compatible server.

    url: up to and with /v1. key: sent as a bearer token; better named in key_env, the name of an
    environment variable that holds it.
    """

    kind: Literal["openai"]
    url: str
    model: str
    key: str | None = None
    key_env: str | None = None
    temperature: Temperature | None = None
    first_token_timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = 15_000
    token_timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = 8_000

    @field_validator("url")
    @classmethod
    def _url_is_http(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError("not an http(s) URL; write it as http://127.0.0.1:8080/v1")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _one_key(self) -> OpenAIWriter:
        if self.key is not None and self.key_env is not None:
            raise ValueError("give key or key_env, not both")
        return self


class SGLang(Section):
    """Text, a language model on a GPU, in SGLang's engine.

    model: the folder of a checkpoint, or its repository (`owner/name`) in the model store.
    memory_share: of the card: weights, cache and all else. running: replies written at once.
    attention_backend, sampling_backend: the engine's names; null: what it prefers on the card.
    graph_batch: the largest batch with a CUDA graph of its own; null: as many as run.
    load_format: dummy loads random weights, for measurements.
    process: the engine takes its process along when it dies, so that must not be the server's.
    """

    kind: Literal["sglang"]
    model: ModelName = "Qwen/Qwen3-4B-Instruct-2507"
    memory_share: Share
    gpu: Card = 0
    context_tokens: Annotated[int, Field(ge=2048, le=1_048_576)] = 8192
    running: Annotated[int, Field(ge=1, le=4096)] = 32
    graph_batch: Annotated[int, Field(ge=1, le=4096)] | None = None
    attention_backend: Annotated[str, Field(min_length=1)] | None = None
    sampling_backend: Annotated[str, Field(min_length=1)] | None = None
    load_format: Literal["auto", "safetensors", "dummy"] = "auto"
    temperature: Temperature = 0.7
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.8
    top_k: Annotated[int, Field(ge=1, le=1_000_000)] = 20
    process: Literal["worker"] = "worker"

    @property
    def card(self) -> int | None:
        return self.gpu

    @property
    def has_weights(self) -> bool:
        """Whether they are read, and not made up."""
        return self.load_format != "dummy"


class Piper(Section):
    """Speech, Piper on ONNX Runtime. path: an .onnx file with its .onnx.json beside it."""

    kind: Literal["piper"]
    voice: Literal["joe"] = "joe"
    path: Path | None = None
    threads: Threads = 2
    process: Place = "inline"


class VoiceSample(Section):
    """A voice to speak with. audio: a few seconds of it; transcript: what is said there, which
    makes it more alike.
    """

    audio: Path
    transcript: Annotated[str, Field(min_length=1, max_length=4000)] | None = None


class Higgs(Section):
    """Speech, Higgs Audio v3 TTS.

    model: the folder of a checkpoint, or its repository (`owner/name`) in the model store.
    voices: by name, the first one is the default; none: the model makes one up.
    slots: replies that are spoken at once. positions: of each, text and sound together; one second
        takes 25, and at the limit the oldest sound is dropped where it is not heard.
    device: auto takes a GPU where there is one. memory_share: of that card.
    seed: makes the same text sound alike each time; null: each reply its own.
    temperature, top_p, top_k: null: what the model is made for.
    """

    kind: Literal["higgs"]
    model: ModelName = HIGGS
    voices: dict[Annotated[str, Field(min_length=1, max_length=200)], VoiceSample] = {}
    slots: Annotated[int, Field(ge=1, le=256)] = 16
    positions: Annotated[int, Field(ge=256, le=32_768)] = 2048
    device: Literal["auto", "cpu", "cuda"] = "auto"
    gpu: Card = 0
    memory_share: Share | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    temperature: Temperature | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=1, le=1024)] | None = None
    process: Place = "worker"

    @property
    def card(self) -> int | None:
        """The card that it may run on."""
        return None if self.device == "cpu" else self.gpu

    @property
    def voice_names(self) -> tuple[str, ...]:
        return tuple(self.voices) or (MADE_UP_VOICE,)


DetectorChoice = Annotated[Silero | Scripted, Field(discriminator="kind")]
JudgeChoice = Annotated[SmartTurn | Scripted, Field(discriminator="kind")]
RecogniserChoice = Annotated[Whisper | WhisperTorch | Scripted, Field(discriminator="kind")]
WriterChoice = Annotated[Llama | SGLang | OpenAIWriter | Scripted, Field(discriminator="kind")]
SpeakerChoice = Annotated[Piper | Higgs | Scripted, Field(discriminator="kind")]

FolderChoice = WhisperTorch | SGLang | Higgs  # whose models are folders


class Stages(Section):
    """Which model fills each role."""

    detector: DetectorChoice = Silero(kind="silero")
    judge: JudgeChoice = SmartTurn(kind="smart_turn")
    recogniser: RecogniserChoice = Whisper(kind="whisper")
    writer: WriterChoice = Llama(kind="llama")
    speaker: SpeakerChoice = Piper(kind="piper")

    @property
    def folder_choices(self) -> list[FolderChoice]:
        choices = (self.recogniser, self.writer, self.speaker)
        return [choice for choice in choices if isinstance(choice, FolderChoice)]


def reads_weights(choice: FolderChoice) -> bool:
    """Whether its model needs weights, and does not make them up."""
    return not isinstance(choice, SGLang) or choice.has_weights
