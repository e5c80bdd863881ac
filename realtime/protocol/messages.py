"""What a client's text becomes: events of the session, and audio on its way to the shell."""

from __future__ import annotations

from dataclasses import dataclass

from realtime.session.events import (
    ClientClear,
    ClientCommit,
    ClientItemCreate,
    ClientItemDelete,
    ClientItemRetrieve,
    ClientItemTruncate,
    ClientRefused,
    ClientResponseCancel,
    ClientResponseCreate,
    ClientSessionUpdate,
    PlaybackReported,
)

# ClientCommit and ClientClear leave the decoder with this; the shell, which counts samples,
# replaces it with the position reached.
POSITION_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class AppendAudio:
    """Bytes in the session's input format; they may end inside a sample. Of Opus: one packet."""

    event_id: str | None
    audio: bytes


@dataclass(frozen=True, slots=True)
class ItemAudio:
    """The inline audio of one content part, in the session's input format.

    `handle` is fresh and stands in the part's `audio_handle`; the part's `audio_ms` is still 0.
    """

    part_index: int
    audio: bytes
    handle: str


@dataclass(frozen=True, slots=True)
class CreateItemWithAudio:
    """An item whose audio the shell files, and whose `audio_ms` it fills, before the machine."""

    event: ClientItemCreate
    audio: tuple[ItemAudio, ...]


@dataclass(frozen=True, slots=True)
class Ping:
    """Is the line alive? Nothing that the conversation learns of."""

    id: str | None


ClientMessage = (
    AppendAudio
    | CreateItemWithAudio
    | Ping
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
