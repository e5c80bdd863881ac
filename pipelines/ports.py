"""The contracts between the server and the stages, and all that the server may see of them.

Every stage is one duplex stream per request: open, push, finish, iterate, abort. An abort is a
tombstone: it returns at once, nothing is delivered after it, and the work behind it ends before
its next step. A stream that is iterated to its end needs no abort; any other does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol, TypeVar

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
ReplyStream = Stream[None, ReplyOutput]


class Cascade(Protocol):
    """All that a session needs: it detects, judges, recognises and replies."""

    @property
    def voices(self) -> tuple[str, ...]:
        """Names that a session may ask for; the first is the default."""
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
