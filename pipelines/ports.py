"""The contracts between the server and the stages, and all that the server may see of them.

Every stage is one duplex stream per request: open, push, finish, iterate, abort. An abort is a
tombstone: it returns at once, nothing is delivered after it, and the work behind it ends before
its next step. A stream that is iterated to its end needs no abort; any other does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from pipelines.types import (
    RecogniseRequest,
    ReplyOutput,
    ReplyRequest,
    Samples,
    SpeakRequest,
    SpeechDelta,
    Transcript,
    Urgency,
    WriteOutput,
    WriteRequest,
)

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
Request = TypeVar("Request", contravariant=True)

Progress = Callable[[str], None]  # called with one line of text: what is loading, how far


class Stream(Protocol[In, Out]):
    """One request on a stage, seen from its owner. Raises StageError from iteration."""

    async def push(self, item: In) -> None:
        """Give more input; waits while the stage has enough. A dead stream ignores it."""
        ...

    async def finish(self) -> None:
        """No more input comes; outputs end when what was pushed is done."""
        ...

    def __aiter__(self) -> AsyncIterator[Out]: ...

    def abort(self) -> None:
        """End the request now. Idempotent; never blocks; no output follows."""
        ...

    def hurry(self, urgency: Urgency) -> None:
        """Change the request's class, for instance of a draft that became a reply."""
        ...


class Stage(Protocol[Request, In, Out]):
    """A model, or something that stands for one."""

    @property
    def name(self) -> str: ...

    @property
    def active(self) -> int:
        """Requests that are open and neither ended nor fully reaped."""
        ...

    async def start(self, progress: Progress) -> None:
        """Load and warm up. Raises ModelMissing or StageError with the command that mends it."""
        ...

    async def close(self) -> None:
        """Abort every request and free everything."""
        ...

    def open(self, request: Request) -> Stream[In, Out]: ...


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a stage that makes sound can do, in seconds of audio per second: measured, not declared.

    streams: how many listeners it can serve in real time at once.
    delivers: what was heard of it over the last half minute: how many listeners it had on average.
    could_deliver: what it would make with every slot at work, whether or not in real time.
    """

    streams: float
    delivers: float
    could_deliver: float

    @property
    def headroom(self) -> float:
        """How many more listeners it can serve; not below zero."""
        return max(0.0, self.streams - self.delivers)


@dataclass(frozen=True, slots=True)
class StageStats:
    """What a stage does at this moment, and has done.

    active: open requests. queued: those that wait for a slot; None where nothing waits for one.
    slots, slots_used: None where there are none. paused: in slots, with enough ahead of the reader.
    steps_per_s, audio_s_per_s: over the last half minute.
    least_lead_s, most_lead_s: seconds of audio made and not read, of the requests that sound.
    aborts, last_abort_ms, worst_abort_ms: how many, and from the abort to the end of all work.
    state, restarts: of a stage in a process of its own: loading, serving, silent (it has not
        answered for a few seconds), restarting or out_of_service; how often it was started again.
    failure: why it cannot serve, for whoever runs the server: it tells of paths. None while it
        does, or is to be back in a moment.
    """

    name: str
    active: int
    queued: int | None = None
    slots: int | None = None
    slots_used: int | None = None
    paused: int | None = None
    steps_per_s: float | None = None
    audio_s_per_s: float | None = None
    least_lead_s: float | None = None
    most_lead_s: float | None = None
    aborts: int = 0
    last_abort_ms: float = 0.0
    worst_abort_ms: float = 0.0
    capacity: Capacity | None = None
    state: str | None = None
    restarts: int | None = None
    failure: str | None = None


@runtime_checkable
class Killable(Protocol):
    """A stage, or what holds some, may also be this: its `close` can be cut short."""

    def kill(self) -> None:
        """End what `close` waits for. Never blocks; nothing is left when `close` returns."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A stage may also be this: one that knows what it does."""

    @property
    def stats(self) -> StageStats: ...

    @property
    def capacity(self) -> Capacity | None:
        """None: unknown, or bounded by nothing that can be measured."""
        ...


class Detector(Protocol):
    """Voice activity of one session. One call per 32 ms frame, in order."""

    async def step(self, frame: Samples) -> float:
        """float32 [512] at 16 kHz to the probability of speech in [0, 1]."""
        ...

    def reset(self) -> None:
        """Forget what was heard, as at the start."""
        ...

    def close(self) -> None:
        """Give the slot back. Idempotent."""
        ...


class DetectorStage(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def active(self) -> int: ...

    async def start(self, progress: Progress) -> None: ...

    async def close(self) -> None: ...

    def open(self) -> Detector: ...


class Judge(Protocol):
    """Says whether a speaker has finished."""

    @property
    def name(self) -> str: ...

    async def start(self, progress: Progress) -> None: ...

    async def close(self) -> None: ...

    async def ask(self, audio: Samples) -> float:
        """float32 [n] at 16 kHz, the turn so far with its silence, to P(finished) in [0, 1].

        Only the last 8 seconds matter. Cancelling the call drops the question.
        """
        ...


Recogniser = Stage[RecogniseRequest, Samples, Transcript]
Writer = Stage[WriteRequest, None, WriteOutput]
Speaker = Stage[SpeakRequest, str, SpeechDelta]
RecogniseStream = Stream[Samples, Transcript]


class ReplyStream(Stream[None, ReplyOutput], Protocol):
    """One reply. Whoever reads it takes every output at once, and says when that is too much."""

    def hold_speech(self, is_held: bool) -> None:
        """While held, no speech is added to what was on its way: the listener has enough.

        Text and calls come as they are written, the end after all speech. Never blocks.
        """
        ...


class SpeechStream(Stream[str, SpeechDelta], Protocol):
    """Text, as it is written, to speech. Text is pushed as it is to be read; what is said of it and
    how is the stream's matter. `text_end` and words count characters of what was pushed."""

    async def flush(self) -> None:
        """Speak what was pushed, though its last sentence may go on."""
        ...


class Cascade(Protocol):
    """All that a session needs: it detects, judges, recognises and replies; and what is needed
    without one: it speaks."""

    @property
    def capacity(self) -> Capacity | None:
        """Of the stage that has least room for another listener; None while none is measured."""
        ...

    @property
    def stats(self) -> tuple[StageStats, ...]:
        """One entry for every stage that tells."""
        ...

    @property
    def voices(self) -> tuple[str, ...]:
        """Names that a session may ask for; the first is the default."""
        ...

    @property
    def copies_voices(self) -> bool:
        """Whether the voice can be copied from a recording (`SpeakRequest.sample`)."""
        ...

    @property
    def model(self) -> str:
        """The language model's name, shown to clients that name none."""
        ...

    @property
    def active(self) -> int:
        """Requests open on any stage."""
        ...

    async def start(self, progress: Progress) -> None: ...

    async def close(self) -> None: ...

    def detect(self) -> Detector: ...

    async def judge(self, audio: Samples) -> float: ...

    def recognise(self, request: RecogniseRequest) -> RecogniseStream: ...

    def reply(self, request: ReplyRequest) -> ReplyStream: ...

    def speak(self, request: SpeakRequest) -> SpeechStream: ...
