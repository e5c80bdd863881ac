"""`session.update`: a partial session to the values that it changes."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Annotated, Any, Literal, cast

from pydantic import Field, PlainValidator

from realtime.protocol.audio_schema import Detection, Format, TranscriptionChoice, Voice
from realtime.protocol.json_text import compact
from realtime.protocol.output_schema import (
    Choice,
    MaxOutputTokens,
    OutputModality,
    Prompt,
    Tools,
)
from realtime.protocol.problems import Invalid, unsupported, wrong_type
from realtime.protocol.wire_model import FIRST_FAULT, Count, WireModel, tagged
from realtime.session.settings import (
    ECHOED,
    SessionType,
    SettingsPatch,
    Truncation,
    TruncationMode,
)

Pairs = list[tuple[str, object]]


class NoiseReductionSchema(WireModel):
    type: Literal["near_field", "far_field"]
    strength: Annotated[float, Field(ge=0)] | None = None


class TokenLimitsSchema(WireModel):
    post_instructions: Count | None = None


class RetentionSchema(WireModel):
    type: Literal["retention_ratio"]
    retention_ratio: Annotated[float, Field(ge=0, le=1)]
    token_limits: TokenLimitsSchema | None = None

    def truncation(self) -> Truncation:
        limits = self.token_limits
        return Truncation(
            TruncationMode.RETENTION_RATIO,
            self.retention_ratio,
            limits.post_instructions if limits else None,
        )


class TracingSchema(WireModel):
    workflow_name: str | None = None
    group_id: str | None = None
    metadata: dict[str, Any] | None = None


class ReasoningSchema(WireModel):
    effort: str | None = None


def word_or_object(value: object, words: tuple[str, ...], schema: type[WireModel]) -> object:
    """One of `words`, or an object that `schema` accepts; unchanged, for the echo."""
    match value:
        case str() if value in words:
            return value
        case str():
            raise Invalid(partial(unsupported, value=value, supported=words))
        case dict():
            schema.model_validate(value)
            return cast("dict[str, Any]", value)
        case _:
            raise Invalid(partial(wrong_type, expected="a string or an object", value=value))


def read_truncation(value: object) -> Truncation:
    read = word_or_object(value, ("auto", "disabled"), RetentionSchema)
    if isinstance(read, str):
        return Truncation(TruncationMode(read))
    return RetentionSchema.model_validate(read).truncation()


def read_tracing(value: object) -> object:
    return word_or_object(value, ("auto",), TracingSchema)


class AudioInputSchema(WireModel):
    """null clears transcription, noise_reduction and turn_detection."""

    format: Format | None = None
    transcription: TranscriptionChoice | None = None
    noise_reduction: NoiseReductionSchema | None = None
    turn_detection: Detection | None = None

    def pairs(self) -> Pairs:
        pairs: Pairs = []
        given = self.model_fields_set
        if self.format is not None:
            pairs.append(("input_format", self.format))
        if "turn_detection" in given:
            pairs.append(("turn_detection", self.turn_detection))
        if "transcription" in given:
            pairs.append(("transcription", self.transcription))
        if "noise_reduction" in given:
            pairs += self._noise_reduction()
        return pairs

    def _noise_reduction(self) -> Pairs:
        """An update without a strength leaves the strength as it is, so it is kept apart."""
        reduction = self.noise_reduction
        kind = None if reduction is None else {"type": reduction.type}
        pairs: Pairs = [_echoed("audio.input.noise_reduction", kind)]
        if reduction is not None and reduction.strength is not None:
            pairs.append(_echoed("audio.input.noise_reduction.strength", reduction.strength))
        return pairs


class AudioOutputSchema(WireModel):
    format: Format | None = None
    voice: Voice | None = None
    speed: Annotated[float, Field(ge=0.25, le=1.5)] | None = None

    def pairs(self) -> Pairs:
        named = (("output_format", self.format), ("voice", self.voice), ("speed", self.speed))
        return [(name, value) for name, value in named if value is not None]


class AudioSchema(WireModel):
    input: AudioInputSchema | None = None
    output: AudioOutputSchema | None = None

    def pairs(self) -> Pairs:
        return [pair for side in (self.input, self.output) if side for pair in side.pairs()]


class HearingSchema(WireModel):
    """`audio` of a transcription session."""

    input: AudioInputSchema | None = None

    def pairs(self) -> Pairs:
        return self.input.pairs() if self.input else []


class SessionSchema(WireModel):
    """What both types of session have. `model` is fixed by the connection and resent by SDKs."""

    type: str
    model: str | None = None
    include: (
        Annotated[list[Literal["item.input_audio_transcription.logprobs"]], FIRST_FAULT] | None
    ) = None

    def patch(self) -> SettingsPatch:
        pairs: Pairs = [("type", SessionType(self.type)), *self.pairs()]
        pairs += [_echoed(name, getattr(self, name)) for name in self.echoed()]
        return SettingsPatch(tuple(pairs))

    @abstractmethod
    def pairs(self) -> Pairs: ...

    def echoed(self) -> list[str]:
        return ["include"] if "include" in self.model_fields_set else []


class TranscriptionSessionSchema(SessionSchema):
    audio: HearingSchema | None = None

    def pairs(self) -> Pairs:
        return self.audio.pairs() if self.audio else []


class RealtimeSessionSchema(SessionSchema):
    output_modalities: OutputModality | None = None
    instructions: str | None = None
    audio: AudioSchema | None = None
    tools: Tools | None = None
    tool_choice: Choice | None = None
    max_output_tokens: MaxOutputTokens | None = None
    truncation: Annotated[Truncation, PlainValidator(read_truncation)] | None = None
    tracing: Annotated[object, PlainValidator(read_tracing)] | None = None
    prompt: Prompt | None = None
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningSchema | None = None

    def pairs(self) -> Pairs:
        named = (
            ("modality", self.output_modalities),
            ("instructions", self.instructions),
            ("tools", None if self.tools is None else tuple(self.tools)),
            ("tool_choice", self.tool_choice),
            ("truncation", self.truncation),
            ("parallel_tool_calls", self.parallel_tool_calls),
        )
        pairs: Pairs = [(name, value) for name, value in named if value is not None]
        if self.max_output_tokens is not None:
            limit = self.max_output_tokens
            pairs.append(("max_output_tokens", None if limit == "inf" else limit))
        return pairs + (self.audio.pairs() if self.audio else [])

    def echoed(self) -> list[str]:
        """null clears include, tracing and prompt; elsewhere it means "unchanged"."""
        clearable = [name for name in ("tracing", "prompt") if name in self.model_fields_set]
        kept = ["reasoning"] if self.reasoning is not None else []
        return [*super().echoed(), *clearable, *kept]


def read_session(value: object) -> SettingsPatch:
    """A session object of the wire to a patch. Raises Invalid or ValidationError."""
    schemas = {"realtime": RealtimeSessionSchema, "transcription": TranscriptionSessionSchema}
    return tagged(value, "type", schemas).patch()


def _echoed(name: str, value: object) -> tuple[str, str]:
    if isinstance(value, WireModel):
        value = value.model_dump(exclude_unset=True)
    return ECHOED + name, compact(value)
