"""A response as the wire shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from realtime.protocol.item_view import item_view
from realtime.protocol.session_view import format_view, max_output_tokens_view
from realtime.session.ledger import Stamp
from realtime.session.notices import ResponseSnapshot, ResponseStatus, ResponseUsage

# The stations of a turn, in the words of this project's extension of `response.done`.
STATIONS: Mapping[Stamp, str] = MappingProxyType(
    {
        Stamp.SPEECH_END: "speech_end",
        Stamp.TRANSCRIPT: "transcript",
        Stamp.TURN_END: "turn_end",
        Stamp.COMMITTED: "committed",
        Stamp.CREATED: "response_created",
        Stamp.FIRST_TEXT: "first_token",
        Stamp.VOICED: "first_text_to_voice",
        Stamp.FIRST_AUDIO: "first_audio_made",
        Stamp.FIRST_SENT: "first_audio_sent",
        Stamp.FIRST_PLAYED: "first_audio_played",
        Stamp.DONE: "done",
    }
)


def latency_view(latency_ms: Iterable[tuple[Stamp, int]]) -> dict[str, int]:
    """Whole milliseconds, ascending; 0 is the user's last sound, or the response's creation where
    no speech is answered. What was worked on ahead lies before the end of the turn.
    """
    return {STATIONS[stamp]: at_ms for stamp, at_ms in latency_ms}


def response_view(response: ResponseSnapshot) -> dict[str, Any]:
    return {
        "object": "realtime.response",
        "id": response.id,
        "status": response.status.value,
        "status_details": _status_details(response),
        "output": [item_view(item) for item in response.output],
        "conversation_id": response.conversation_id,
        "output_modalities": [response.modality.value],
        "max_output_tokens": max_output_tokens_view(response.max_output_tokens),
        "audio": {
            "output": {"format": format_view(response.output_format), "voice": response.voice}
        },
        "usage": None if response.usage is None else _usage_view(response.usage),
        "metadata": None if response.metadata is None else dict(response.metadata),
    }


def _status_details(response: ResponseSnapshot) -> dict[str, Any] | None:
    status = response.status
    match status:
        case ResponseStatus.IN_PROGRESS | ResponseStatus.COMPLETED:
            return None
        case ResponseStatus.CANCELLED | ResponseStatus.INCOMPLETE:
            return {"type": status.value, "reason": response.reason}
        case ResponseStatus.FAILED:
            error = {"type": "server_error", "code": response.error_code}
            if response.error_message is not None:
                error["message"] = response.error_message
            return {"type": status.value, "error": error}


def _usage_view(usage: ResponseUsage) -> dict[str, Any]:
    """The model reads text, whatever the user's audio was: input is text alone."""
    output = usage.output_text + usage.output_audio
    return {
        "total_tokens": usage.input_text + output,
        "input_tokens": usage.input_text,
        "output_tokens": output,
        "input_token_details": {
            "text_tokens": usage.input_text,
            "audio_tokens": 0,
            "image_tokens": 0,
            "cached_tokens": usage.input_cached,
            "cached_tokens_details": {
                "text_tokens": usage.input_cached,
                "audio_tokens": 0,
                "image_tokens": 0,
            },
        },
        "output_token_details": {
            "text_tokens": usage.output_text,
            "audio_tokens": usage.output_audio,
        },
    }
