"""What the routes of voices say of what they take and answer in `/openapi.json`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from realtime.http.description import Responses, failures
from realtime.voices.names import MAX_NAME_CHARACTERS
from realtime.voices.recording import FIELD
from realtime.voices.shelf import MAX_CONSENT_CHARACTERS, MAX_TRANSCRIPT_CHARACTERS

SAMPLED = "audio_sample"  # how an uploaded voice was made


class _Voice(BaseModel):
    model_config = ConfigDict(extra="forbid")

    object: Literal["audio.voice"]
    id: str = Field(description="What requests name under `voice`.")
    name: str = Field(description="The same.")
    available: bool = Field(description="Whether this server can speak with it.")


class ConfiguredVoice(_Voice):
    """A voice of the server's own."""

    kind: Literal["configured"]


class UploadedVoice(_Voice):
    """A voice that is copied from a recording."""

    kind: Literal["uploaded"]
    type: Literal["audio_sample"]
    created_at: int = Field(description="Unix time, in seconds.")
    duration_ms: int = Field(description="Of the recording.")
    transcript: str | None = Field(description="What is said in it.")


class ConsentedVoice(UploadedVoice):
    """An uploaded voice, with the statement that it may be copied."""

    consent: str


class VoiceList(BaseModel):
    """The configured voices, the default first, and the uploaded ones."""

    model_config = ConfigDict(extra="forbid")

    object: Literal["list"]
    data: list[ConfiguredVoice | UploadedVoice]
    can_copy: bool = Field(description="Whether this server can speak with voices of recordings.")


class DeletedVoice(BaseModel):
    """The name is free again."""

    model_config = ConfigDict(extra="forbid")

    object: Literal["audio.voice.deleted"]
    id: str
    deleted: Literal[True]


LISTED: Responses = {200: {"model": VoiceList, "description": "All voices."}} | failures(
    401, 403, 503
)
SHOWN: Responses = {
    200: {"model": ConfiguredVoice | ConsentedVoice, "description": "The voice."}
} | failures(401, 403, 404, 503)
ADDED: Responses = {
    200: {"model": ConsentedVoice, "description": "The voice, which can be asked for."}
} | failures(400, 401, 403, 408, 409, 413, 415, 429, 503)
DELETED: Responses = {
    200: {"model": DeletedVoice, "description": "The voice and its recording are gone."}
} | failures(400, 401, 403, 404, 503)

# What `POST` takes; forms have no model of their own.
UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["name", FIELD, "consent"],
                    "properties": {
                        "name": {
                            "type": "string",
                            "pattern": f"^[A-Za-z0-9_-]{{1,{MAX_NAME_CHARACTERS}}}$",
                            "description": "What requests name under `voice`, in any capitals.",
                        },
                        "type": {
                            "type": "string",
                            "enum": [SAMPLED],
                            "description": "May be left out.",
                        },
                        FIELD: {
                            "type": "string",
                            "format": "binary",
                            "description": "The recording, of 1 to 30 s, in any format that FFmpeg "
                            "reads.",
                        },
                        "transcript": {
                            "type": "string",
                            "maxLength": MAX_TRANSCRIPT_CHARACTERS,
                            "description": "What is said in it: the copy is better for it.",
                        },
                        "consent": {
                            "type": "string",
                            "minLength": 1,
                            "maxLength": MAX_CONSENT_CHARACTERS,
                            "description": "The statement that the speaker agrees to be copied.",
                        },
                    },
                }
            }
        },
    }
}
