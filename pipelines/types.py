"""What travels between the server and the stages: requests, outputs and errors.

Audio is always a one-dimensional float32 array in [-1, 1], mono; its rate is named beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Samples: TypeAlias = npt.NDArray[np.float32]

HEARING_RATE_HZ = 16_000  # every recogniser, detector and judge here hears at this rate
ANY_LANGUAGE = "any"  # of a request to recognise: whichever is heard in it
DETECTOR_FRAME_SAMPLES = 512  # 32 ms, the frame that Silero was trained on


class Urgency(IntEnum):
    """Who goes first when stages compete for one device; lower is more urgent."""

    FIRST_AUDIO = 0  # a committed turn that has made no sound yet
    RUNNING_DRY = 1  # steady audio whose listener is about to hear a gap
    STEADY = 2  # audio whose listener has enough ahead
    DRAFT = 3  # speculation that nobody may ever hear


class FinishReason(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, slots=True)
class ToolCall:
    call_id: str
    name: str
    arguments: str  # a JSON text, as the model wrote it


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a prompt. `role` is system, user, assistant or tool."""

    role: str
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None  # of a tool message: the call that it answers


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    description: str
    parameters_json: str  # JSON Schema of the arguments


@dataclass(frozen=True, slots=True)
class Truncation:
    """What is left out of a conversation that is longer than a model can read.

    may_drop: whether anything; if not, such a request fails with `context_length_exceeded`.
    keep_share: how much of the limit the newest messages may fill after a cut, 0 to 1. The cut
        stays where it is until the limit is reached again, and the prompt's prefix with it.
    limit_tokens: of all messages behind the instructions; None: what the model's context leaves.
    """

    may_drop: bool = True
    keep_share: float = 0.5
    limit_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class RecogniseRequest:
    """Speech to text. Audio is pushed as float32 at `HEARING_RATE_HZ`."""

    request_id: str
    urgency: Urgency = Urgency.FIRST_AUDIO
    language: str | None = None  # ISO 639-1, or ANY_LANGUAGE; None: the recogniser's default
    prompt: str = ""  # words that the speaker is likely to use
    wants_partials: bool = False  # transcripts of what was pushed so far, which may be revised
    wants_words: bool = False  # when each word of the final transcript was said
    translates: bool = False  # to English, by a recogniser that can


@dataclass(frozen=True, slots=True)
class HeardWord:
    """One word of a transcript, and when it was said: seconds from the first pushed sample."""

    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Transcript:
    """Text heard so far. Exactly one final transcript ends a stream; `text` may be empty.

    language: ISO 639-1, as asked for or heard; None where the recogniser does not tell.
    words: of a final transcript that was asked for them, in order; empty where a recogniser knows
        none. Joined with the spaces between them they are the text.
    """

    text: str
    is_final: bool
    language: str | None = None
    words: tuple[HeardWord, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """Messages to text. Yields TextDelta, ToolCallDelta, UsageSoFar and, last, Finished.

    tool_choice: required and a tool's name yield a call whose arguments fit its parameters, or
        fail; what a model says instead is not passed on.
    parallel_tool_calls: whether there may be more than one call.
    max_output_tokens: 0 only has the model read the messages, the last of which may go on; a stage
        for which that means nothing finishes at once.
    is_spoken: the text will be said aloud; where no limit is named, a stage may end it at a
    sentence before it becomes a lecture.
    """

    request_id: str
    messages: tuple[Message, ...]
    urgency: Urgency = Urgency.FIRST_AUDIO
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"  # auto, none, required, or a tool's name
    max_output_tokens: int | None = None
    temperature: float | None = None  # None: the stage's own default
    is_spoken: bool = False
    parallel_tool_calls: bool = True
    truncation: Truncation = Truncation()


@dataclass(frozen=True, slots=True)
class VoiceSample:
    """A recording whose voice is copied.

    data: the bytes of a sound file, in any usual format; the stage refuses what is none.
    transcript: what is said in it; None: unknown.
    """

    data: bytes
    transcript: str | None = None


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a voice that draws its sound by chance does so; others take no notice.

    None: the stage's own default. seed: the same request with the same seed sounds alike.
    most_frames: of 40 ms, after which the speech ends whatever is left to say.
    first_frames: how many are made before the first sound leaves; more is safer, and later.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    most_frames: int | None = None
    first_frames: int | None = None


@dataclass(frozen=True, slots=True)
class SpeakRequest:
    """Text to speech. Text is pushed in speakable chunks; yields SpeechDelta.

    sample: whose voice is spoken with, instead of `voice`; StageError `copying_unsupported` from a
        stage that cannot copy, `voice_sample_refused` where the recording cannot be used.
    """

    request_id: str
    voice: str
    urgency: Urgency = Urgency.FIRST_AUDIO
    speed: float = 1.0
    sample: VoiceSample | None = None
    drawing: Drawing = Drawing()


@dataclass(frozen=True, slots=True)
class ReplyRequest:
    """One whole reply: messages to text and, if `speak`, to speech.

    text: what is said, word for word; nothing is written then.
    sample: whose voice is spoken with, instead of `voice`; as in SpeakRequest.
    """

    request_id: str
    messages: tuple[Message, ...]
    urgency: Urgency
    speak: bool
    voice: str
    speed: float = 1.0
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    max_output_tokens: int | None = None
    temperature: float | None = None
    parallel_tool_calls: bool = True
    truncation: Truncation = Truncation()
    text: str | None = None
    sample: VoiceSample | None = None


def demands_call(request: WriteRequest | ReplyRequest) -> bool:
    """Whether the answer must be a call of a tool: words are no answer."""
    named = {"required", *(tool.name for tool in request.tools)}
    return bool(request.tools) and request.tool_choice in named


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the reply's display text, in order."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call. The first piece of each `index` carries `call_id` and `name`."""

    index: int
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class WordEnd:
    """Where a word's sound ends.

    samples: from the start of the delta that tells it, at the delta's rate.
    text_end: as in SpeechDelta. A pause is told by its end, with the text_end that it began with.
    """

    samples: int
    text_end: int


@dataclass(frozen=True, slots=True)
class SpeechDelta:
    """A piece of the reply's audio.

    samples: float32 [n] at `rate_hz`, one rate for the whole stream.
    text_end: how many characters of the reply's display text (all TextDelta joined) have been
        spoken once these samples have been played. Never decreases; a stage that speaks pushed
        chunks counts the characters pushed.
    words: the words that end inside these samples, ascending; empty where a stage knows none.
    """

    samples: Samples
    rate_hz: int
    text_end: int
    words: tuple[WordEnd, ...] = ()


@dataclass(frozen=True, slots=True)
class VoiceFed:
    """The voice has been given the first words of the reply. Told once, for the ledger of time."""


@dataclass(frozen=True, slots=True)
class Written:
    """The writer of a spoken reply has ended: its text and calls are whole.

    Told once. Speech may follow for long, since it is made only as it is heard.
    reason: None where the writer failed, which the end of the reply tells.
    """

    reason: FinishReason | None


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    def plus(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class UsageSoFar:
    """What a request has read and written until now: all that is known if it is broken off."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Finished:
    """The last output of every WriteRequest and ReplyRequest that did not fail."""

    reason: FinishReason
    usage: Usage = field(default_factory=Usage)


WriteOutput: TypeAlias = TextDelta | ToolCallDelta | UsageSoFar | Finished
ReplyOutput: TypeAlias = (
    TextDelta | ToolCallDelta | VoiceFed | SpeechDelta | UsageSoFar | Written | Finished
)


class StageError(Exception):
    """A stage failed one request; the stage itself lives on.

    code: a short machine-readable word (`llm_unreachable`, `asr_failed`, `stage_timeout`, ...).
    message: what is wrong, where, and what to do; shown to the user.
    detail: what the server's log tells in its place, where that is nothing for users: addresses and
        settings of the server, what other servers said.
    """

    def __init__(self, code: str, message: str, detail: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = message if detail is None else detail
