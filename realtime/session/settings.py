"""What a client may choose for a session or for one response, as plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

OPUS_PADDING_MS = 27  # a frame of 40 ms, and what the codec holds back, in packets of 10 to 60


class SessionType(StrEnum):
    REALTIME = "realtime"
    TRANSCRIPTION = "transcription"


class Modality(StrEnum):
    AUDIO = "audio"
    TEXT = "text"


class Eagerness(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    AUTO = "auto"  # the same as medium


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """`type` is audio/pcm (16-bit little-endian mono), audio/pcmu, audio/pcma or audio/opus."""

    type: str = "audio/pcm"
    rate_hz: int = 24_000

    @property
    def padding_ms(self) -> int:
        """How much silence fills up the packet of a fade or of a reply's end, at most."""
        return OPUS_PADDING_MS if self.type == "audio/opus" else 0


@dataclass(frozen=True, slots=True)
class ServerVad:
    """A turn ends at exactly `silence_duration_ms` of silence."""

    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    idle_timeout_ms: int | None = None
    create_response: bool = True
    interrupt_response: bool = True


@dataclass(frozen=True, slots=True)
class SemanticVad:
    """A turn ends when the judge believes that the speaker has finished."""

    eagerness: Eagerness = Eagerness.AUTO
    create_response: bool = True
    interrupt_response: bool = True


TurnDetection = ServerVad | SemanticVad


@dataclass(frozen=True, slots=True)
class Transcription:
    """`model` is kept and echoed; the configured recogniser hears everything."""

    model: str = "whisper-1"
    language: str | None = None
    prompt: str | None = None
    extra_json: str = "{}"  # other fields of the wire, kept and echoed


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the client runs. `wire_json` is the tool exactly as the client gave it."""

    name: str
    description: str
    parameters_json: str
    wire_json: str


class ToolMode(StrEnum):
    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"
    FUNCTION = "function"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    mode: ToolMode = ToolMode.AUTO
    name: str | None = None  # with ToolMode.FUNCTION


class TruncationMode(StrEnum):
    AUTO = "auto"
    DISABLED = "disabled"
    RETENTION_RATIO = "retention_ratio"


@dataclass(frozen=True, slots=True)
class Truncation:
    """What a prompt leaves out when the conversation is longer than the model can read.

    retention_ratio: with RETENTION_RATIO, how much of the limit is kept when it is reached.
    post_instructions_tokens: the limit; None: what the model's context leaves.
    """

    mode: TruncationMode = TruncationMode.AUTO
    retention_ratio: float = 1.0
    post_instructions_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The effective session. Defaults are those of the wire, but for `turn_detection`."""

    type: SessionType = SessionType.REALTIME
    model: str = "parley"
    modality: Modality = Modality.AUDIO
    instructions: str = ""
    voice: str = "default"
    speed: float = 1.0
    input_format: AudioFormat = AudioFormat()
    output_format: AudioFormat = AudioFormat()
    turn_detection: TurnDetection | None = SemanticVad()
    transcription: Transcription | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    max_output_tokens: int | None = None  # None is the wire's "inf"
    truncation: Truncation = Truncation()
    parallel_tool_calls: bool | None = None  # None: never named, which allows them
    echoed_json: tuple[tuple[str, str], ...] = ()  # accepted, kept and echoed: (field, JSON)

    @property
    def creates_responses(self) -> bool:
        """Whether the end of a turn is answered without being asked."""
        return (
            self.type is SessionType.REALTIME
            and self.turn_detection is not None
            and self.turn_detection.create_response
        )

    @property
    def interrupts_responses(self) -> bool:
        return self.turn_detection is not None and self.turn_detection.interrupt_response

    def patched(self, patch: SettingsPatch) -> SessionSettings:
        """These settings after an update."""
        plain: dict[str, object] = {}
        echoed = dict(self.echoed_json)
        for name, value in patch.values:
            if name.startswith(ECHOED):
                echoed[name.removeprefix(ECHOED)] = str(value)
            else:
                plain[name] = value
        return replace(
            self,
            echoed_json=tuple(sorted(echoed.items())),
            **plain,  # pyright: ignore[reportArgumentType]
        )


ECHOED = "echoed:"  # begins the name of a patch of a field that is only kept and echoed


@dataclass(frozen=True, slots=True)
class SettingsPatch:
    """A checked partial update: (field of SessionSettings, new value) pairs; absent = unchanged.

    A pair ("echoed:FIELD", JSON) replaces the entry FIELD of `echoed_json` and leaves its other
    entries as they are; FIELD is the wire's dotted path below `session`, for instance
    "audio.input.noise_reduction". The JSON "null" is kept and echoed like any other.
    """

    values: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class ResponseOptions:
    """What `response.create` overrides for one response; None = as the session has it."""

    instructions: str | None = None
    modality: Modality | None = None
    voice: str | None = None
    output_format: AudioFormat | None = None
    tools: tuple[Tool, ...] | None = None
    tool_choice: ToolChoice | None = None
    max_output_tokens: int | None = None
    unlimited_output: bool = False  # the wire's explicit "inf"
    parallel_tool_calls: bool | None = None
    metadata: tuple[tuple[str, str], ...] | None = None
    out_of_band: bool = False  # conversation: "none"
    input: tuple[object, ...] | None = None  # items.Item or items.ItemReference; None = default
