"""What the client is told. `protocol/` gives each notice its form on the wire.

Ids of the wire's events are not here: the encoder numbers what it sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from realtime.session.items import Item
from realtime.session.ledger import Stamp
from realtime.session.settings import AudioFormat, Modality, SessionSettings


@dataclass(frozen=True, slots=True)
class ErrorRaised:
    type: str  # invalid_request_error, server_error
    code: str | None
    message: str
    param: str | None = None
    client_event_id: str | None = None


@dataclass(frozen=True, slots=True)
class SessionCreated:
    session_id: str
    settings: SessionSettings
    expires_at_s: int


@dataclass(frozen=True, slots=True)
class SessionUpdated:
    session_id: str
    settings: SessionSettings
    expires_at_s: int


# ---- input audio -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    item_id: str
    audio_start_ms: int


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    item_id: str
    audio_end_ms: int


@dataclass(frozen=True, slots=True)
class InputCommitted:
    item_id: str
    previous_item_id: str | None


@dataclass(frozen=True, slots=True)
class InputCleared:
    pass


@dataclass(frozen=True, slots=True)
class TimeoutTriggered:
    item_id: str
    audio_start_ms: int
    audio_end_ms: int


@dataclass(frozen=True, slots=True)
class TranscriptionDelta:
    item_id: str
    content_index: int
    delta: str


@dataclass(frozen=True, slots=True)
class TranscriptionCompleted:
    item_id: str
    content_index: int
    transcript: str
    audio_ms: int  # becomes the duration in `usage`


@dataclass(frozen=True, slots=True)
class TranscriptionFailed:
    item_id: str
    content_index: int
    code: str
    message: str


# ---- items -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ItemAdded:
    item: Item
    previous_item_id: str | None


@dataclass(frozen=True, slots=True)
class ItemDone:
    item: Item
    previous_item_id: str | None


@dataclass(frozen=True, slots=True)
class ItemRetrieved:
    """The shell adds the audio that it keeps for this item."""

    item: Item


@dataclass(frozen=True, slots=True)
class ItemTruncated:
    item_id: str
    content_index: int
    audio_end_ms: int


@dataclass(frozen=True, slots=True)
class ItemDeleted:
    item_id: str


# ---- responses -------------------------------------------------------------------------------


class ResponseStatus(StrEnum):
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True)
class ResponseUsage:
    """Tokens. Text and audio add up to the totals; cached is a part of the input."""

    input_text: int = 0
    input_cached: int = 0
    output_text: int = 0
    output_audio: int = 0


@dataclass(frozen=True, slots=True)
class ResponseSnapshot:
    """reason: of cancelled (turn_detected, client_cancelled) and incomplete responses.

    error_code, error_message: of failed ones.
    """

    id: str
    status: ResponseStatus
    output: tuple[Item, ...]
    conversation_id: str | None  # None: out of band
    modality: Modality
    voice: str
    output_format: AudioFormat
    max_output_tokens: int | None
    metadata: tuple[tuple[str, str], ...] | None
    reason: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    usage: ResponseUsage | None = None


@dataclass(frozen=True, slots=True)
class ResponseCreated:
    response: ResponseSnapshot


@dataclass(frozen=True, slots=True)
class ResponseDone:
    """latency_ms: the stations of its turn that were passed, since the user's last sound."""

    response: ResponseSnapshot
    latency_ms: tuple[tuple[Stamp, int], ...] = ()


@dataclass(frozen=True, slots=True)
class OutputItemAdded:
    response_id: str
    output_index: int
    item: Item


@dataclass(frozen=True, slots=True)
class OutputItemDone:
    response_id: str
    output_index: int
    item: Item


@dataclass(frozen=True, slots=True)
class PartAddress:
    response_id: str
    item_id: str
    output_index: int
    content_index: int


@dataclass(frozen=True, slots=True)
class PartAdded:
    at: PartAddress
    modality: Modality


@dataclass(frozen=True, slots=True)
class PartDone:
    at: PartAddress
    modality: Modality
    text: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """`modality` AUDIO: a delta of the audio's transcript; TEXT: of the text itself."""

    at: PartAddress
    modality: Modality
    delta: str


@dataclass(frozen=True, slots=True)
class TextDone:
    at: PartAddress
    modality: Modality
    text: str


@dataclass(frozen=True, slots=True)
class AudioDone:
    at: PartAddress


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    response_id: str
    item_id: str
    output_index: int
    call_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class ArgumentsDone:
    response_id: str
    item_id: str
    output_index: int
    call_id: str
    name: str
    arguments: str


# ---- the client's connection ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pong:
    """The answer to a ping, with the name that the client has given it."""

    id: str | None


# ---- details, for clients that ask for them ---------------------------------------------------


class ShownState(StrEnum):
    """What the conversation looks like to whoever watches it."""

    LISTENING = "listening"
    HEARING = "hearing"
    THINKING = "thinking"
    SPEAKING = "speaking"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class StateShown:
    state: ShownState


@dataclass(frozen=True, slots=True)
class HeardSoFar:
    """All words heard of a turn that goes on; may be revised.

    No words after its speech_stopped: the turn came to nothing, and no item will bear its id.
    """

    item_id: str
    transcript: str


Detail = StateShown | HeardSoFar

Notice = (
    ErrorRaised
    | SessionCreated
    | SessionUpdated
    | SpeechStarted
    | SpeechStopped
    | InputCommitted
    | InputCleared
    | TimeoutTriggered
    | TranscriptionDelta
    | TranscriptionCompleted
    | TranscriptionFailed
    | ItemAdded
    | ItemDone
    | ItemRetrieved
    | ItemTruncated
    | ItemDeleted
    | ResponseCreated
    | ResponseDone
    | OutputItemAdded
    | OutputItemDone
    | PartAdded
    | PartDone
    | TextDelta
    | TextDone
    | AudioDone
    | ArgumentsDelta
    | ArgumentsDone
    | Pong
)
