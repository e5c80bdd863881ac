"""Client text to messages. Whatever comes, the answer is a message; nothing is raised."""

from __future__ import annotations

from typing import Any, TypeGuard

from pydantic import ValidationError

from realtime.protocol.event_schema import EVENT_SCHEMAS, MAX_EVENT_ID_CHARACTERS
from realtime.protocol.json_text import (
    MAX_SEARCHED_CHARACTERS,
    Unreadable,
    find_text,
    read_object,
)
from realtime.protocol.messages import ClientMessage
from realtime.protocol.problems import (
    Invalid,
    Problem,
    first_problem,
    invalid,
    unsupported,
    wrong_type,
)
from realtime.protocol.session_schema import read_session
from realtime.session.events import ClientRefused
from realtime.session.settings import SettingsPatch

# Events that clients of other dialects and transports send, with what to do instead.
_ELSEWHERE = {
    "output_audio_buffer.clear": (
        "'output_audio_buffer.clear' is for WebRTC and SIP, where the server plays the audio. On a "
        "WebSocket the client does: stop playback, then send 'response.cancel' and "
        "'conversation.item.truncate'."
    ),
    "transcription_session.update": (
        "'transcription_session.update' belongs to the beta interface. Send 'session.update' with "
        "session.type 'transcription'."
    ),
}


def decode(message: str | bytes) -> ClientMessage:
    """One frame of the WebSocket to a message.

    A frame that is no valid event becomes ClientRefused, with its `event_id` wherever that could
    be read. ClientCommit and ClientClear come with POSITION_UNKNOWN, an item with inline audio as
    CreateItemWithAudio.
    """
    if isinstance(message, bytes):
        text = message[:MAX_SEARCHED_CHARACTERS].decode(errors="replace")
        return _refusal(find_text(text, "event_id"), _binary())
    try:
        event = read_object(message)
    except Unreadable as error:
        return _refusal(find_text(message, "event_id"), error.problem)
    read = _read(event, len(message))
    return _refusal(event.get("event_id"), read) if isinstance(read, Problem) else read


def decode_session(session: object) -> SettingsPatch | Problem:
    """A session object that came by another way than `session.update`, such as a request body."""
    try:
        return read_session(session)
    except ValidationError as error:
        return first_problem(error, ("session",))
    except Invalid as error:
        return error.problem(("session",))


def _read(event: dict[str, Any], characters: int) -> ClientMessage | Problem:
    if "type" not in event:
        return Problem("invalid_event", "The 'type' field is missing.", None)
    kind = event["type"]
    if not isinstance(kind, str):
        return wrong_type("type", "a string", kind)
    schema = EVENT_SCHEMAS.get(kind)
    if schema is None:
        if kind in _ELSEWHERE:
            return invalid("type", _ELSEWHERE[kind])
        return unsupported("type", kind, tuple(EVENT_SCHEMAS))
    limit = schema.max_characters
    if limit is not None and characters > limit:
        return invalid(
            None,
            f"The event is too long: '{kind}' may have {limit} characters of JSON, but this one "
            f"has {characters}.",
        )
    try:
        return schema.model_validate(event).message()
    except ValidationError as error:
        return first_problem(error)


def _is_event_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= MAX_EVENT_ID_CHARACTERS


def _binary() -> Problem:
    return Problem(
        "invalid_event", "Binary frames are not supported: send each event as JSON text.", None
    )


def _refusal(event_id: object, problem: Problem) -> ClientRefused:
    known_id = event_id if _is_event_id(event_id) else None
    return ClientRefused(
        known_id, "invalid_request_error", problem.code, problem.message, problem.param
    )
