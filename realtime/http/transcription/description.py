"""What the transcription routes say of their answers in `/openapi.json`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from realtime.http.description import REQUEST_ID, Responses, described, failures

_EVENTS = (
    "With stream true. Each event is `data: ` and JSON: `transcript.text.delta` with `delta`, then "
    "`transcript.text.done` with `text` and `usage`; or `error` with `error`, as in other failures."
)


class Heard(BaseModel):
    """How much was listened to."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["duration"]
    seconds: float


class Written(BaseModel):
    """With response_format json."""

    model_config = ConfigDict(extra="forbid")

    text: str
    usage: Heard


class TimedSegment(BaseModel):
    """start, end: seconds from the file's beginning."""

    model_config = ConfigDict(extra="forbid")

    id: int
    start: float
    end: float
    text: str


class TimedWord(BaseModel):
    """start, end: seconds from the file's beginning."""

    model_config = ConfigDict(extra="forbid")

    word: str
    start: float
    end: float


class Verbose(Written):
    """With response_format verbose_json."""

    task: Literal["transcribe", "translate"]
    language: str = Field(description="ISO 639-1; und where nothing is said.")
    duration: float = Field(description="Of the file, in seconds.")
    segments: list[TimedSegment] = Field(default=[], description="Unless words alone are wanted.")
    words: list[TimedWord] = Field(default=[], description="If they are wanted.")


def transcription_responses(*, may_stream: bool) -> Responses:
    """may_stream: whether the route sends events."""
    content: dict[str, Any] = {
        "application/json": {"schema": {"oneOf": [described(Written), described(Verbose)]}},
        "text/plain": _text("With response_format text."),
        "text/vtt": _text("With response_format vtt: WebVTT."),
        "application/x-subrip": _text("With response_format srt: SubRip."),
    }
    if may_stream:
        content["text/event-stream"] = _text(_EVENTS)
    made = {"description": "What is said.", "headers": REQUEST_ID, "content": content}
    return {200: made} | failures(400, 401, 403, 408, 413, 415, 429, 500, 503, 504)


def _text(what: str) -> dict[str, Any]:
    return {"schema": {"type": "string", "description": what}}
