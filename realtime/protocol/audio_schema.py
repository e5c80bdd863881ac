"""Audio formats, turn detection, transcription and voices, as clients write them."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from realtime.protocol.formats import WIRE_FORMATS, Coding
from realtime.protocol.json_text import compact
from realtime.protocol.opus_library import HOW_TO_INSTALL, has_opus
from realtime.protocol.problems import Invalid, Problem, invalid, unsupported, wrong_type
from realtime.protocol.wire_model import FIRST_FAULT, WireModel, object_of, tagged, word_of
from realtime.session.settings import (
    AudioFormat,
    Eagerness,
    SemanticVad,
    ServerVad,
    Transcription,
    TurnDetection,
)

MAX_PREFIX_PADDING_MS = 10_000  # well within the audio that is kept before an onset
MAX_SILENCE_MS = 60_000  # longer pauses are not pauses within one turn
MAX_IDLE_TIMEOUT_MS = 3_600_000  # the length of a session
MAX_VOICE_CHARACTERS = 256  # every response shows the name


class FormatSchema(WireModel):
    type: str
    rate: int | None = None


def read_format(value: object) -> AudioFormat:
    """Raises Invalid; for Opus also if this machine has no library for it."""
    word = word_of(object_of(value), "type", tuple(WIRE_FORMATS))
    if WIRE_FORMATS[word].coding is Coding.OPUS and not has_opus():
        supported = tuple(name for name in WIRE_FORMATS if name != word)
        raise Invalid(
            partial(unsupported, value=word, supported=supported, why=HOW_TO_INSTALL), at=("type",)
        )
    given = FormatSchema.model_validate(value)
    rates_hz = WIRE_FORMATS[given.type].rates_hz
    if given.rate is None:
        return AudioFormat(given.type, rates_hz[0])
    if given.rate not in rates_hz:
        supported = tuple(str(rate_hz) for rate_hz in rates_hz)
        why = f"They are the rates of '{given.type}' in Hz."
        raise Invalid(
            partial(unsupported, value=given.rate, supported=supported, why=why), at=("rate",)
        )
    return AudioFormat(given.type, given.rate)


class ServerVadSchema(WireModel):
    type: Literal["server_vad"]
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    prefix_padding_ms: Annotated[int, Field(ge=0, le=MAX_PREFIX_PADDING_MS)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=0, le=MAX_SILENCE_MS)] | None = None
    idle_timeout_ms: Annotated[int, Field(ge=1, le=MAX_IDLE_TIMEOUT_MS)] | None = None
    create_response: bool | None = None
    interrupt_response: bool | None = None


class SemanticVadSchema(WireModel):
    type: Literal["semantic_vad"]
    eagerness: Literal["low", "medium", "high", "auto"] | None = None
    create_response: bool | None = None
    interrupt_response: bool | None = None


def read_turn_detection(value: object) -> TurnDetection:
    schemas = {"server_vad": ServerVadSchema, "semantic_vad": SemanticVadSchema}
    given: dict[str, Any] = tagged(value, "type", schemas).model_dump(exclude_none=True)
    if given.pop("type") == "server_vad":
        return ServerVad(**given)
    eagerness = Eagerness(given.pop("eagerness", Eagerness.AUTO))
    return SemanticVad(eagerness=eagerness, **given)


Words = Annotated[list[str], FIRST_FAULT]


class TranscriptionSchema(WireModel):
    model: str | None = None
    language: str | None = None
    prompt: str | None = None
    languages: Words | None = None
    keywords: Words | None = None
    delay: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None


def read_transcription(value: object) -> Transcription:
    given = TranscriptionSchema.model_validate(object_of(value))
    extra = given.model_dump(include={"languages", "keywords", "delay"}, exclude_none=True)
    named = given.model_dump(include={"model", "language", "prompt"}, exclude_none=True)
    return Transcription(**named, extra_json=compact(extra))


class VoiceSchema(WireModel):
    id: Annotated[str, Field(min_length=1, max_length=MAX_VOICE_CHARACTERS)]


def read_voice(value: object) -> str:
    """A name, or {"id": name}."""
    match value:
        case str() if len(value) > MAX_VOICE_CHARACTERS:
            raise Invalid(_long_voice)
        case str() if value:
            return value
        case dict():
            return VoiceSchema.model_validate(value).id
        case _:
            expected = "a voice's name or an object with its 'id'"
            raise Invalid(partial(wrong_type, expected=expected, value=value))


def _long_voice(path: str) -> Problem:
    return invalid(path, f"Invalid '{path}': expected at most {MAX_VOICE_CHARACTERS} characters.")


Format = Annotated[AudioFormat, PlainValidator(read_format)]
Detection = Annotated[TurnDetection, PlainValidator(read_turn_detection)]
TranscriptionChoice = Annotated[Transcription, PlainValidator(read_transcription)]
Voice = Annotated[str, PlainValidator(read_voice)]
