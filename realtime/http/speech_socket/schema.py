"""What a client writes on the socket of speech: one JSON object a frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, ValidationError

from realtime.http.faults import first_fault
from realtime.http.speech.schema import (
    MAX_FRAMES,
    MAX_SEED,
    MAX_TOP_K,
    Name,
    SpeechFormat,
    VoiceName,
)
from realtime.protocol.json_text import Unreadable, read_object
from realtime.protocol.problems import Invalid, Problem
from realtime.protocol.wire_model import WireModel, word_of

# A fat book in one message; what is longer comes in several, which are one text all the same.
MAX_APPEND_CHARACTERS = 2**20
MAX_INSTRUCTIONS_CHARACTERS = 4096  # as OpenAI's request has it


class SessionConfig(WireModel):
    """`session.config`: how the next request and all after it sound; what is left out is usual.

    The fields are those of `POST /v1/audio/speech`, but for a recording to copy: upload it as a
    voice. model, instructions: taken, and followed by nobody. word_timestamps: whether
    `audio.words` comes with the audio.
    """

    type: Literal["session.config"] = "session.config"
    model: Name | None = None
    voice: VoiceName = None
    response_format: SpeechFormat = "pcm"
    speed: Annotated[float, Field(ge=0.25, le=4)] = 1.0
    instructions: Annotated[str, Field(max_length=MAX_INSTRUCTIONS_CHARACTERS)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=MAX_TOP_K)] | None = None
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = None
    max_new_tokens: Annotated[int, Field(ge=1, le=MAX_FRAMES)] | None = None
    initial_codec_chunk_frames: Annotated[int, Field(ge=0, le=MAX_FRAMES)] | None = None
    word_timestamps: bool = False


class Append(WireModel):
    """`input.append`: more text, cut anywhere."""

    type: Literal["input.append"] = "input.append"
    text: Annotated[str, Field(max_length=MAX_APPEND_CHARACTERS)]


class Flush(WireModel):
    """`input.flush`: speak what has come, though its sentence may go on."""

    type: Literal["input.flush"] = "input.flush"


class Cancel(WireModel):
    """`input.cancel`: be silent at once, and forget what has come."""

    type: Literal["input.cancel"] = "input.cancel"


class Done(WireModel):
    """`input.done`: the text is whole."""

    type: Literal["input.done"] = "input.done"


ClientMessage: TypeAlias = SessionConfig | Append | Flush | Cancel | Done

_MODELS: Mapping[str, type[ClientMessage]] = {
    "session.config": SessionConfig,
    "input.append": Append,
    "input.flush": Flush,
    "input.cancel": Cancel,
    "input.done": Done,
}


def read_message(frame: str | bytes) -> ClientMessage | Problem:
    """One frame to a message; whatever comes, nothing is raised. A null stands for nothing."""
    if isinstance(frame, bytes):
        why = "Binary frames are not supported: send each message as JSON text."
        return Problem("invalid_event", why, None)
    try:
        said = {name: value for name, value in read_object(frame).items() if value is not None}
        model = _MODELS[word_of(said, "type", tuple(_MODELS))]
    except Unreadable as error:
        return error.problem
    except Invalid as error:
        return error.problem(())
    try:
        return model.model_validate(said)
    except ValidationError as error:
        return first_fault(error, model)


def read_query(query: Mapping[str, str]) -> SessionConfig | Problem:
    """What the address sets: any field of `session.config`. An empty value stands for nothing."""
    try:
        return SessionConfig.model_validate_strings(
            {name: value for name, value in query.items() if value}, strict=False
        )
    except ValidationError as error:
        return first_fault(error, SessionConfig)
