"""What a session has, and may have, by the configuration alone."""

from __future__ import annotations

from realtime.session.bounds import Bounds
from realtime.session.settings import (
    Eagerness,
    SemanticVad,
    ServerVad,
    SessionSettings,
    SessionType,
    Transcription,
    TurnDetection,
)
from realtime.settings import Limits, SemanticVadDefault, SessionDefaults


def session_bounds(limits: Limits) -> Bounds:
    """What one client may put into its session."""
    return Bounds(
        items=limits.items,
        instruction_characters=limits.instruction_characters,
        tools=limits.tools,
        tool_characters=limits.tool_characters,
    )


def session_settings(
    defaults: SessionDefaults, session_type: SessionType, *, model: str, voice: str
) -> SessionSettings:
    """What a session has until its client says otherwise."""
    return SessionSettings(
        type=session_type,
        model=model,
        instructions=defaults.instructions,
        voice=voice,
        turn_detection=_turn_detection(defaults),
        # A transcription session is there for its transcripts, whether or not it names a model.
        transcription=Transcription() if session_type is SessionType.TRANSCRIPTION else None,
    )


def _turn_detection(defaults: SessionDefaults) -> TurnDetection | None:
    chosen = defaults.turn_detection
    if chosen is None:
        return None
    if isinstance(chosen, SemanticVadDefault):
        values = chosen.model_dump(exclude={"type", "eagerness"})
        return SemanticVad(eagerness=Eagerness(chosen.eagerness), **values)
    return ServerVad(**chosen.model_dump(exclude={"type"}))
