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

from realtime.http.description import described
from realtime.protocol.problems import Invalid, Problem, invalid, missing, wrong_type

# OpenAI takes 4096 characters; a chapter of a book is more, and is spoken as it is read.
MAX_INPUT_CHARACTERS = 100_000
MAX_BATCH_ITEMS = 32
# A result is sent in one line, and is whole in memory for that: some twenty minutes of speech.
MAX_ITEM_CHARACTERS = 20_000
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
        raise Invalid(_no_text)
    return value


def _no_text(path: str) -> Problem:
    return invalid(path, f"Invalid '{path}': there is no text to speak.")


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

    data: str | None = Field(default=None, description="The file in base64, or a data URL of it.")
    audio_url: str | None = Field(
        default=None,
        description="An http or https address, where the server allows it; a data URL.",
    )
    audio_path: str | None = Field(
        default=None, description="A file of the server's, in a folder that it allows."
    )
    text: str | None = Field(default=None, description="What is said in the recording.")


class SpeechFields(_Fields):
    """All fields of one speech but its text; in a batch, what its items have in common."""

    model: str | None = Field(default=None, description="Any name: the server has one voice model.")
    voice: VoiceName = Field(
        default=None,
        description="A voice that GET /v1/audio/voices lists; left out or one of OpenAI's, the "
        "server's default.",
    )
    instructions: str | None = Field(default=None, description="Taken, and followed by no voice.")
    response_format: SpeechFormat | None = Field(
        default=None,
        description="Default mp3. opus comes in Ogg; pcm is 16 bit, little-endian, mono, 24 kHz.",
    )
    speed: Annotated[float, Field(ge=0.25, le=4.0)] | None = Field(
        default=None, description="Default 1. Tempo, at the same pitch: 2 is twice as fast."
    )
    stream_format: Literal["audio", "sse"] | None = Field(
        default=None,
        description="Default audio: the file's bytes. sse: server-sent events with pieces of the "
        "file in base64. A batch passes it over.",
    )
    stream: bool | None = Field(
        default=None,
        description="true: the file is sent while it is made, and cannot tell its length; false: "
        "once it is whole; left out: false for wav and flac, true for all others. A batch passes "
        "it over.",
    )
    references: Annotated[list[Reference], Field(max_length=1, fail_fast=True)] | None = Field(
        default=None,
        description="The recording whose voice is copied, where the server's voice can; one at "
        "most, in one of data, audio_url and audio_path.",
    )
    ref_audio: str | None = Field(
        default=None,
        description="The same in one field: base64, a data, http, https or file URL, or a path.",
    )
    ref_text: str | None = Field(default=None, description="What is said in ref_audio.")
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = Field(
        default=None, description="How freely the voice draws; left out, the voice's own."
    )
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] | None = Field(
        default=None,
        description="Share of likelihood that is drawn from; left out, the voice's own.",
    )
    top_k: Annotated[int, Field(ge=-1, le=MAX_TOP_K)] | None = Field(
        default=None,
        description="How many tokens are drawn from; left out, the voice's own; 0 and -1: all.",
    )
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = Field(
        default=None,
        description="The same request with the same seed sounds alike, of a voice that draws by "
        "chance; left out, the voice's own.",
    )
    max_new_tokens: Annotated[int, Field(ge=1, le=MAX_FRAMES)] | None = Field(
        default=None,
        description="Most frames of 40 ms, after which the speech ends; left out, the voice's own.",
    )
    initial_codec_chunk_frames: Annotated[int, Field(ge=0, le=MAX_FRAMES)] | None = Field(
        default=None,
        description="Frames of 40 ms that are made before the first sound leaves: more is safer, "
        "and later; left out, the voice's own.",
    )


class SpeechBody(SpeechFields):
    """`POST /v1/audio/speech`."""

    input: Input = Field(
        description=f"The text to speak; in a batch, {MAX_ITEM_CHARACTERS} characters at most."
    )


class BatchItem(SpeechBody):
    """One speech of a batch, with the batch's defaults. id: told with its result."""

    id: Name | None = Field(default=None, description="Told again with the item's result.")


# An item is read by itself, since it may be at fault by itself; it may lack what is in common.
_Item = Annotated[Any, WithJsonSchema(described(BatchItem))]


class BatchBody(SpeechFields):
    """`POST /v1/audio/speech/batch`."""

    items: Annotated[
        list[_Item],
        Field(
            min_length=1,
            max_length=MAX_BATCH_ITEMS,
            description="The speeches. What an item leaves out is taken from beside 'items'.",
        ),
    ]


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """What a route says of the JSON that it takes, for the server's description of itself."""
    content = {"application/json": {"schema": described(model)}}
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
