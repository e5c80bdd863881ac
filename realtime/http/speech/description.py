"""What the speech routes say of their answers in `/openapi.json`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from realtime.audio.encoding import SPEECH_FORMATS
from realtime.http.description import REQUEST_ID, Fault, Responses, described, failures
from realtime.http.speech.schema import SpeechFormat

_OF_PCM = {
    "X-Sample-Rate": "Of pcm alone: 24000.",
    "X-Channels": "Of pcm alone: 1.",
    "X-Bit-Depth": "Of pcm alone: 16.",
}
_EVENTS = (
    "With stream_format sse. Each event is `data: ` and JSON: `speech.audio.delta` with `audio` "
    "(base64; joined, they are the file), then `speech.audio.done` with `usage`; or `error` with "
    "`error`, as in other failures."
)


class Usage(BaseModel):
    """OpenAI's fields."""

    model_config = ConfigDict(extra="forbid")

    input_tokens: int = Field(description="Characters of the text.")
    output_tokens: int = Field(description="Frames of 40 ms.")
    total_tokens: int = Field(description="Both.")


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid")

    index: int = Field(description="Which item of the request it is, counted from 0.")
    id: str | None = Field(description="The item's id, if it has one.")


class MadeLine(_Line):
    """An item that was spoken."""

    audio: str = Field(description="The file, in base64.")
    format: SpeechFormat
    duration_s: float
    usage: Usage


class FailedLine(_Line):
    """An item that was not."""

    error: Fault


def speech_responses() -> Responses:
    content: dict[str, Any] = {
        info.media_type: {
            "schema": {
                "type": "string",
                "format": "binary",
                "description": f"With response_format {info.name}.",
            }
        }
        for info in SPEECH_FORMATS.values()
    }
    content["text/event-stream"] = {"schema": {"type": "string", "description": _EVENTS}}
    headers = {
        name: {"description": why, "schema": {"type": "integer"}} for name, why in _OF_PCM.items()
    }
    made = {
        "description": "The speech: a sound file, or events that carry one.",
        "headers": REQUEST_ID | headers,
        "content": content,
    }
    return {200: made} | failures(400, 401, 403, 408, 413, 415, 429, 500, 503, 504)


def batch_responses() -> Responses:
    line = {
        "description": "One line for each item, as soon as it is made; in any order.",
        "oneOf": [described(MadeLine), described(FailedLine)],
    }
    made = {
        "description": "A line of JSON for each item. An item's failure is in its line.",
        "headers": REQUEST_ID,
        "content": {"application/x-ndjson": {"schema": line}},
    }
    return {200: made} | failures(400, 401, 403, 408, 413, 415, 429, 503)
