"""Everything that the machine asks of its shell. Effects are carried out in order, at once.

A request id names one piece of stage work for good. After `Abort(request)` the shell may still
deliver results of it: the machine ignores them.
"""

from __future__ import annotations

from dataclasses import dataclass

from realtime.session.items import Item
from realtime.session.ledger import TurnTimeline
from realtime.session.notices import Detail, Notice
from realtime.session.settings import AudioFormat, Tool, ToolChoice, Truncation

VOICE_LANE = "voice"  # the conversation's own; the others are those of out-of-band responses


@dataclass(frozen=True, slots=True)
class Notify:
    """Tell the client."""

    notice: Notice


@dataclass(frozen=True, slots=True)
class NotifyDetail:
    """Tell the client, if it is one that asks for details."""

    detail: Detail


@dataclass(frozen=True, slots=True)
class TellConversation:
    """Tell a client that came back of every item, in order, as added and done.

    items: each with the id of the one before it.
    """

    items: tuple[tuple[Item, str | None], ...]


# ---- hearing ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeepAudio:
    """Keep the user's audio from `start` on for this turn, beside the ring, until told else.

    `start` may lie before the present by as much as the ring holds.
    """

    turn: int
    start: int


@dataclass(frozen=True, slots=True)
class DropAudio:
    """The turn came to nothing: forget its audio."""

    turn: int


@dataclass(frozen=True, slots=True)
class FileAudio:
    """The turn's audio up to `end` now belongs to an item; keep it for retrieval."""

    turn: int
    end: int
    item_id: str


@dataclass(frozen=True, slots=True)
class ForgetItemAudio:
    item_id: str


@dataclass(frozen=True, slots=True)
class TrimItemAudio:
    """Cut an item's audio, for instance of a reply, to what was heard."""

    item_id: str
    audio_ms: int


@dataclass(frozen=True, slots=True)
class ResetHearing:
    """The detector forgets what it heard; the next audio stands alone."""


@dataclass(frozen=True, slots=True)
class AskJudge:
    """Is the speaker done? Answer with JudgeAnswered or JudgeFailed. start..end: positions."""

    request: str
    turn: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Listen:
    """Recognise a turn's audio from `start` on, as it comes; `Recognise` of this request ends it.

    TranscriptPartial may tell what was heard so far. is_urgent: somebody waits for the words.
    """

    request: str
    turn: int
    start: int
    language: str | None
    prompt: str | None
    is_urgent: bool = False


@dataclass(frozen=True, slots=True)
class Recognise:
    """Recognise a turn's audio from start to end (positions). A request that listens ends here."""

    request: str
    turn: int
    start: int
    end: int
    language: str | None
    prompt: str | None


@dataclass(frozen=True, slots=True)
class RecogniseHandle:
    """Recognise audio that the client put into an item."""

    request: str
    audio_handle: str
    language: str | None
    prompt: str | None


# ---- replying --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PromptCall:
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class PromptMessage:
    role: str  # system, user, assistant, tool
    text: str
    calls: tuple[PromptCall, ...] = ()
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class StartReply:
    """Begin a reply. Its audio is held in the egress under `request` until PlayReply.

    text: what is said, word for word, instead of what a model would write.
    """

    request: str
    draft: bool
    messages: tuple[PromptMessage, ...]
    speak: bool
    voice: str
    speed: float
    output_format: AudioFormat
    tools: tuple[Tool, ...]
    tool_choice: ToolChoice
    max_output_tokens: int | None
    truncation: Truncation = Truncation()
    parallel_tool_calls: bool = True
    text: str | None = None


@dataclass(frozen=True, slots=True)
class PrepareReply:
    """Have the language model read a prompt whose last message goes on; nothing comes of it."""

    request: str
    messages: tuple[PromptMessage, ...]
    tools: tuple[Tool, ...]
    tool_choice: ToolChoice
    truncation: Truncation = Truncation()


@dataclass(frozen=True, slots=True)
class AdoptReply:
    """A draft became the reply: raise its urgency."""

    request: str


@dataclass(frozen=True, slots=True)
class Abort:
    """End this piece of work, of whatever kind, and drop its unsent audio."""

    request: str


@dataclass(frozen=True, slots=True)
class PlayReply:
    """Let a reply's audio leave on a lane, as deltas of this item's content part.

    Frames that leave afterwards bear `epoch`; audio of the lane still playing goes first.
    """

    request: str
    lane: str
    epoch: int
    response_id: str
    item_id: str
    output_index: int
    content_index: int


@dataclass(frozen=True, slots=True)
class HoldLane:
    """Send nothing more on this lane until it is released or cut.

    fade_samples: how many unsent samples of the request, faded to silence, leave at once before.
    """

    lane: str
    request: str | None = None
    fade_samples: int = 0


@dataclass(frozen=True, slots=True)
class ReleaseLane:
    """Go on at the next unsent sample, faded in."""

    lane: str


@dataclass(frozen=True, slots=True)
class CutLane:
    """From this effect on nothing older than `epoch` leaves.

    fade_samples: how many unsent samples, faded to silence, still leave at once as the last frame.
    """

    lane: str
    epoch: int
    request: str | None
    fade_samples: int


@dataclass(frozen=True, slots=True)
class Observe:
    """A turn's latency ledger is complete."""

    timeline: TurnTimeline


@dataclass(frozen=True, slots=True)
class CloseTransport:
    """Close the socket once everything before this effect has been sent."""

    code: int
    reason: str


Effect = (
    Notify
    | NotifyDetail
    | TellConversation
    | KeepAudio
    | DropAudio
    | FileAudio
    | ForgetItemAudio
    | TrimItemAudio
    | ResetHearing
    | AskJudge
    | Listen
    | Recognise
    | RecogniseHandle
    | StartReply
    | PrepareReply
    | AdoptReply
    | Abort
    | PlayReply
    | HoldLane
    | ReleaseLane
    | CutLane
    | Observe
    | CloseTransport
)
