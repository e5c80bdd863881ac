"""The JSON of `POST /v1/audio/speech` and `/batch`: OpenAI's fields and those of speech models."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from realtime.protocol.problems import Invalid, Problem, invalid, missing, wrong_type

# OpenAI takes 4096 characters; a chapter of a book is more, and is spoken as it is read.
MAX_INPUT_CHARACTERS = 100_000
MAX_BATCH_ITEMS = 32
MAX_NAME_CHARACTERS = 200  # of voices and of a batch's items: to be told in error messages
MAX_SEED = 2**63 - 1  # what a generator takes
MAX_FRAMES = 100_000  # over an hour of 40 ms frames; a model's own limit is far lower
MAX_TOP_K = 2**31 - 1

SpeechFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]


def _voice_name(value: object) -> object:
    """A name, or an object with an `id`, as OpenAI's SDKs send a voice of one's own."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise Invalid(partial(wrong_type, expected="a string or an object", value=value))
    members = cast("dict[str, object]", value)
    if "id" not in members:
        raise Invalid(missing, at=("id",))
    name = members["id"]
    if not isinstance(name, str):
        raise Invalid(partial(wrong_type, expected="a string", value=name), at=("id",))
    return name


def _text_to_speak(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise Invalid(partial(invalid, message="Invalid 'input': there is no text to speak."))
    return value


_NAME = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARACTERS}
_NAMED = {"type": "object", "required": ["id"], "properties": {"id": _NAME}}
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARACTERS)]
VoiceName = Annotated[
    Name | None,
    BeforeValidator(_voice_name),
    WithJsonSchema({"anyOf": [_NAME, _NAMED, {"type": "null"}]}),
]
Input = Annotated[
    str, BeforeValidator(_text_to_speak), StringConstraints(max_length=MAX_INPUT_CHARACTERS)
]


class _Fields(BaseModel):
    """Strict, but open: what other servers' clients send beside is passed over.

    None on the wire means the same as a field left out.
    """

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class Reference(_Fields):
    """A recording whose voice is copied, named in one of three ways, and what is said in it.

    data: base64, or a data URL. audio_url: http, https or data. audio_path: a file of the server's.
    """

    data: str | None = None
    audio_url: str | None = None
    audio_path: str | None = None
    text: str | None = None


class SpeechFields(_Fields):
    """All fields of one speech but its text; in a batch, what its items have in common.

    model: any name; the server has one voice model. instructions: taken, and followed by no voice.
    stream: whether the file is sent while it is made, and cannot tell its length; if left out,
        all formats are but WAV and FLAC.
    references: one at most. ref_audio, ref_text: the same, in two fields.
    """

    model: str | None = None
    voice: VoiceName = None
    instructions: str | None = None
    response_format: SpeechFormat | None = None
    speed: Annotated[float, Field(ge=0.25, le=4.0)] | None = None
    stream_format: Literal["audio", "sse"] | None = None
    stream: bool | None = None
    references: Annotated[list[Reference], Field(max_length=1, fail_fast=True)] | None = None
    ref_audio: str | None = None
    ref_text: str | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=MAX_TOP_K)] | None = None
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = None
    max_new_tokens: Annotated[int, Field(ge=1, le=MAX_FRAMES)] | None = None
    initial_codec_chunk_frames: Annotated[int, Field(ge=0, le=MAX_FRAMES)] | None = None


class SpeechBody(SpeechFields):
    """`POST /v1/audio/speech`."""

    input: Input


class BatchItem(SpeechBody):
    """One speech of a batch, with the batch's defaults. id: told with its result."""

    id: Name | None = None


def _described(model: type[BaseModel]) -> dict[str, Any]:
    """A model's JSON Schema, which refers to nothing outside itself."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})
    return _with_parts(schema, parts)


def _with_parts(schema: Any, parts: dict[str, Any]) -> Any:
    match schema:
        case {"$ref": str(name)}:
            return _with_parts(parts[name.removeprefix("#/$defs/")], parts)
        case dict():
            members = cast("dict[str, Any]", schema)
            return {name: _with_parts(member, parts) for name, member in members.items()}
        case list():
            return [_with_parts(entry, parts) for entry in cast("list[Any]", schema)]
        case _:
            return schema


# An item is read by itself, since it may be at fault by itself; it may lack what is in common.
_Item = Annotated[Any, WithJsonSchema(_described(BatchItem))]


class BatchBody(SpeechFields):
    """`POST /v1/audio/speech/batch`."""

    items: Annotated[list[_Item], Field(min_length=1, max_length=MAX_BATCH_ITEMS)]


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """What a route says of the JSON that it takes, for the server's description of itself."""
    content = {"application/json": {"schema": _described(model)}}
    return {"requestBody": {"required": True, "content": content}}


REFERENCE_FIELDS = frozenset({"references", "ref_audio", "ref_text"})


def with_defaults(item: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """An item of a batch with what it leaves out. A recording of its own replaces the common one,
    with its transcript."""
    own = {name: value for name, value in item.items() if value is not None}
    hidden = REFERENCE_FIELDS if own.keys() & REFERENCE_FIELDS else frozenset[str]()
    common = {
        name: value for name, value in defaults.items() if name not in hidden and name != "items"
    }
    return {**common, **own}


def conflict(fields: SpeechFields) -> Problem | None:
    """What is wrong between the fields that name a recording."""
    if fields.references and fields.ref_audio is not None:
        return invalid("ref_audio", "Send either 'references' or 'ref_audio', not both.")
    if fields.ref_text is not None and fields.ref_audio is None:
        return invalid(
            "ref_text", "Invalid 'ref_text': it is what is said in 'ref_audio', which is missing."
        )
    for reference in fields.references or ():
        sources = (reference.data, reference.audio_url, reference.audio_path)
        if sum(source is not None for source in sources) != 1:
            return invalid(
                "references[0]",
                "Invalid 'references[0]': name the recording in one of 'data' (base64), "
                "'audio_url' and 'audio_path'.",
            )
    return None
