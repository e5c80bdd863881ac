"""The session as the wire shows it: whole, with every default filled in."""

from __future__ import annotations

import json
from typing import Any

from realtime.protocol.formats import WIRE_FORMATS
from realtime.session.settings import (
    AudioFormat,
    SemanticVad,
    ServerVad,
    SessionSettings,
    SessionType,
    ToolChoice,
    ToolMode,
    Transcription,
    Truncation,
    TruncationMode,
    TurnDetection,
)

NOISE_REDUCTION = "audio.input.noise_reduction"

# Fields that are echoed even if nobody has set them, with the value that this means.
_REALTIME_ECHOES: dict[str, object] = {
    "include": None,
    "tracing": None,
    "prompt": None,
}


def session_view(session_id: str, settings: SessionSettings, expires_at_s: int) -> dict[str, Any]:
    """The `session` of session.created, session.updated and client secrets."""
    echoes = {name: json.loads(text) for name, text in settings.echoed_json}
    if settings.type is SessionType.TRANSCRIPTION:
        return {
            "type": "transcription",
            "object": "realtime.transcription_session",
            "id": session_id,
            "expires_at": expires_at_s,
            "include": echoes.get("include"),
            "audio": {"input": _input_view(settings, echoes)},
        }
    top_level = {name: value for name, value in echoes.items() if "." not in name}
    return {
        "type": "realtime",
        "object": "realtime.session",
        "id": session_id,
        "model": settings.model,
        "expires_at": expires_at_s,
        "output_modalities": [settings.modality.value],
        "instructions": settings.instructions,
        "tools": [json.loads(tool.wire_json) for tool in settings.tools],
        "tool_choice": _tool_choice_view(settings.tool_choice),
        "max_output_tokens": max_output_tokens_view(settings.max_output_tokens),
        "audio": {
            "input": _input_view(settings, echoes),
            "output": {
                "format": format_view(settings.output_format),
                "voice": settings.voice,
                "speed": settings.speed,
            },
        },
        "truncation": _truncation_view(settings.truncation),
        **_parallel_view(settings.parallel_tool_calls),
        **_REALTIME_ECHOES,
        **top_level,
    }


def format_view(audio_format: AudioFormat) -> dict[str, Any]:
    if WIRE_FORMATS[audio_format.type].shows_rate:
        return {"type": audio_format.type, "rate": audio_format.rate_hz}
    return {"type": audio_format.type}


def max_output_tokens_view(limit: int | None) -> int | str:
    return "inf" if limit is None else limit


def _input_view(settings: SessionSettings, echoes: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": format_view(settings.input_format),
        "transcription": _transcription_view(settings.transcription),
        "noise_reduction": _noise_reduction_view(echoes),
        "turn_detection": _turn_detection_view(settings.turn_detection),
    }


def _noise_reduction_view(echoes: dict[str, Any]) -> dict[str, Any] | None:
    kind = echoes.get(NOISE_REDUCTION)
    return kind and {**kind, "strength": echoes.get(f"{NOISE_REDUCTION}.strength", 1)}


def _transcription_view(transcription: Transcription | None) -> dict[str, Any] | None:
    if transcription is None:
        return None
    return {
        "model": transcription.model,
        "language": transcription.language,
        "prompt": transcription.prompt,
        **json.loads(transcription.extra_json),
    }


def _turn_detection_view(detection: TurnDetection | None) -> dict[str, Any] | None:
    match detection:
        case None:
            return None
        case ServerVad():
            return {
                "type": "server_vad",
                "threshold": detection.threshold,
                "prefix_padding_ms": detection.prefix_padding_ms,
                "silence_duration_ms": detection.silence_duration_ms,
                "idle_timeout_ms": detection.idle_timeout_ms,
                "create_response": detection.create_response,
                "interrupt_response": detection.interrupt_response,
            }
        case SemanticVad():
            return {
                "type": "semantic_vad",
                "eagerness": detection.eagerness.value,
                "create_response": detection.create_response,
                "interrupt_response": detection.interrupt_response,
            }


def _truncation_view(truncation: Truncation) -> str | dict[str, Any]:
    if truncation.mode is not TruncationMode.RETENTION_RATIO:
        return truncation.mode.value
    view = {"type": truncation.mode.value, "retention_ratio": truncation.retention_ratio}
    limit = truncation.post_instructions_tokens
    return view if limit is None else {**view, "token_limits": {"post_instructions": limit}}


def _parallel_view(allowed: bool | None) -> dict[str, bool]:
    """Shown to a client that has named it; the default session has no such field."""
    return {} if allowed is None else {"parallel_tool_calls": allowed}


def _tool_choice_view(choice: ToolChoice) -> str | dict[str, Any]:
    if choice.mode is ToolMode.FUNCTION:
        return {"type": "function", "name": choice.name}
    return choice.mode.value
