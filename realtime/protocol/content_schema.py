"""Content parts of messages, as clients write them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from realtime.protocol.audio_bytes import AudioBytes
from realtime.protocol.problems import Invalid, Problem, invalid, missing
from realtime.protocol.wire_model import WireModel, tagged
from realtime.session.items import Part, PartKind

_HANDLE_BYTES = 12  # random enough never to meet again within a server's life
_IMAGE_PREFIX = "data:image/"

_ASSISTANT_HINTS = {
    "output_audio": "Audio of the assistant cannot be created; send its words as 'output_text'.",
}


@dataclass(frozen=True, slots=True)
class ReadPart:
    """A part, and its inline audio if it has some."""

    part: Part
    audio: bytes | None = None


class InputTextSchema(WireModel):
    type: Literal["input_text"]
    text: str

    def read(self) -> ReadPart:
        return ReadPart(Part(PartKind.INPUT_TEXT, self.text))


class OutputTextSchema(WireModel):
    type: Literal["output_text"]
    text: str

    def read(self) -> ReadPart:
        return ReadPart(Part(PartKind.OUTPUT_TEXT, self.text))


class InputAudioSchema(WireModel):
    """A transcript without audio is what SDKs send back of a turn that they remember."""

    type: Literal["input_audio"]
    audio: AudioBytes | None = None
    transcript: str | None = None

    def read(self) -> ReadPart:
        if self.audio is None and self.transcript is None:
            raise Invalid(missing, at=("audio",))
        handle = None
        if self.audio is not None:
            handle = f"audio_{secrets.token_hex(_HANDLE_BYTES)}"
        return ReadPart(Part(PartKind.INPUT_AUDIO, self.transcript, handle), self.audio)


class InputImageSchema(WireModel):
    type: Literal["input_image"]
    image_url: str
    detail: Literal["auto", "low", "high"] | None = None

    def read(self) -> ReadPart:
        if not self.image_url.startswith(_IMAGE_PREFIX):
            raise Invalid(_not_a_data_uri, at=("image_url",))
        part = Part(PartKind.INPUT_IMAGE, image_url=self.image_url, image_detail=self.detail)
        return ReadPart(part)


def _not_a_data_uri(path: str) -> Problem:
    return invalid(path, f"Invalid '{path}': expected a data URI that begins '{_IMAGE_PREFIX}'.")


PartSchema = InputTextSchema | OutputTextSchema | InputAudioSchema | InputImageSchema


def _read_part(
    value: object,
    schemas: Mapping[str, type[PartSchema]],
    hints: Mapping[str, str] | None = None,
) -> ReadPart:
    return tagged(value, "type", schemas, hints).read()


def read_user_part(value: object) -> ReadPart:
    schemas: dict[str, type[PartSchema]] = {
        "input_text": InputTextSchema,
        "input_audio": InputAudioSchema,
        "input_image": InputImageSchema,
    }
    return _read_part(value, schemas)


def read_system_part(value: object) -> ReadPart:
    return _read_part(value, {"input_text": InputTextSchema})


def read_assistant_part(value: object) -> ReadPart:
    return _read_part(value, {"output_text": OutputTextSchema}, _ASSISTANT_HINTS)
