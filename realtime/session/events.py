"""Everything that can happen to a session, as the machine's input.

Positions are samples at 16 kHz since the session began (audio time). Sample counts of replies are
at the reply's own wire rate. `turn` numbers count up from 1; `request` names one piece of stage
work and comes from the effect that started it, so that a late result can be told from a live one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from realtime.session.bounds import Bounds
from realtime.session.items import Item
from realtime.session.settings import ResponseOptions, SessionSettings, SettingsPatch


@dataclass(frozen=True, slots=True)
class Opened:
    """The first event. `seed` makes every id; `expires_at_s` is unix time, for the echo only.

    lead_ms: how far audio is sent ahead of its playback; None: as fast as it is made.
    lasts_ms: how long the session may last, which is until `expires_at_s`; None: as long as it is
    used. resume_ms: how long a parked session waits for its client.
    """

    seed: int
    settings: SessionSettings
    profile: str  # browser or phone: which thresholds hold (policy.py)
    drafts: bool  # whether to work ahead of the end of a turn
    expires_at_s: int
    lead_ms: float | None = None
    lasts_ms: float | None = None
    bounds: Bounds = Bounds()
    resume_ms: float = 60_000  # a lost network is mostly back within a minute


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The socket is gone. `resumable`: keep the conversation for a while.

    unsent: (item, samples) of audio that has left the egress and never reached the network.
    is_silent: no word of the client's end came; it may have heard nothing since its last sign.
    """

    resumable: bool = False
    unsent: tuple[tuple[str, int], ...] = ()
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Reconnected:
    """A client came back to a parked session. `position`: all audio received until then."""

    position: int = 0


@dataclass(frozen=True, slots=True)
class ShutDown:
    """The server stops: finish what is being said, for so long at most, then close."""

    within_ms: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A deadline of the machine (`Machine.next_deadline_ms`) has come."""


# ---- hearing ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AudioFrame:
    """32 ms of the user's audio went by. `position` is its end, `speech` the detector's P."""

    position: int
    speech: float
    level_dbfs: float


@dataclass(frozen=True, slots=True)
class JudgeAnswered:
    request: str
    probability: float


@dataclass(frozen=True, slots=True)
class JudgeFailed:
    request: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class TranscriptPartial:
    """All text heard so far; may be revised. Never ends a turn."""

    request: str
    text: str


@dataclass(frozen=True, slots=True)
class TranscriptFinal:
    request: str
    text: str


@dataclass(frozen=True, slots=True)
class TranscriptFailed:
    request: str
    code: str
    message: str


# ---- replying --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplyText:
    request: str
    text: str


@dataclass(frozen=True, slots=True)
class ReplyAudio:
    """More audio waits in the egress. `text_end`: characters of reply text spoken at its end.

    words: (samples of the whole reply, characters) up to the end of each word or pause in it.
    """

    request: str
    samples: int
    text_end: int
    words: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyVoiced:
    """The voice has been given the reply's first words."""

    request: str


@dataclass(frozen=True, slots=True)
class ReplyToolCall:
    """A piece of a call's arguments; the first piece of an index opens the call."""

    request: str
    index: int
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ReplyUsage:
    """What the language model has read and written of a reply until now."""

    request: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class ReplyWritten:
    """The text and the calls of a spoken reply are whole; more speech may follow."""

    request: str
    reason: str  # as in ReplyFinished


@dataclass(frozen=True, slots=True)
class ReplyFinished:
    request: str
    reason: str  # stop, length, tool_calls, content_filter
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ReplyFailed:
    request: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class AudioLeaving:
    """A frame of a reply is about to leave; `samples` counts the reply's samples up to its end."""

    request: str
    samples: int


@dataclass(frozen=True, slots=True)
class EgressDrained:
    """A finished reply's last sample has left."""

    request: str


# ---- the client ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientRefused:
    """An event that could not be read, with the answer it deserves."""

    event_id: str | None
    type: str
    code: str | None
    message: str
    param: str | None = None


@dataclass(frozen=True, slots=True)
class ClientSessionUpdate:
    event_id: str | None
    patch: SettingsPatch


@dataclass(frozen=True, slots=True)
class ClientCommit:
    """`position`: all audio received before the event, in samples at 16 kHz."""

    event_id: str | None
    position: int


@dataclass(frozen=True, slots=True)
class ClientClear:
    event_id: str | None
    position: int


@dataclass(frozen=True, slots=True)
class ClientItemCreate:
    """previous_item_id: None appends, "root" puts first, else after that item."""

    event_id: str | None
    item: Item
    previous_item_id: str | None = None


@dataclass(frozen=True, slots=True)
class ClientItemRetrieve:
    event_id: str | None
    item_id: str


@dataclass(frozen=True, slots=True)
class ClientItemTruncate:
    event_id: str | None
    item_id: str
    content_index: int
    audio_end_ms: int


@dataclass(frozen=True, slots=True)
class ClientItemDelete:
    event_id: str | None
    item_id: str


@dataclass(frozen=True, slots=True)
class ClientResponseCreate:
    event_id: str | None
    options: ResponseOptions = field(default_factory=ResponseOptions)


@dataclass(frozen=True, slots=True)
class ClientResponseCancel:
    event_id: str | None
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class PlaybackReported:
    """The client or the carrier says how much of an item has been played so far."""

    item_id: str
    played_ms: int


Event = (
    Opened
    | Disconnected
    | Reconnected
    | ShutDown
    | Tick
    | AudioFrame
    | JudgeAnswered
    | JudgeFailed
    | TranscriptPartial
    | TranscriptFinal
    | TranscriptFailed
    | ReplyText
    | ReplyAudio
    | ReplyVoiced
    | ReplyWritten
    | ReplyToolCall
    | ReplyUsage
    | ReplyFinished
    | ReplyFailed
    | AudioLeaving
    | EgressDrained
    | ClientRefused
    | ClientSessionUpdate
    | ClientCommit
    | ClientClear
    | ClientItemCreate
    | ClientItemRetrieve
    | ClientItemTruncate
    | ClientItemDelete
    | ClientResponseCreate
    | ClientResponseCancel
    | PlaybackReported
)
