"""Stages for worker processes: each function is a factory that a worker imports."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np

from pipelines.fakes.hearing import FakeRecogniser
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.writer import FakeWriter, words
from pipelines.ports import Capacity, Progress, StageStats
from pipelines.runtime.async_stage import AsyncDuplexStage
from pipelines.runtime.message_codec import STAGE_CODEC
from pipelines.runtime.self_scheduled import Emit, SelfScheduledStage
from pipelines.runtime.ticket import Ticket
from pipelines.types import (
    RecogniseRequest,
    Samples,
    SpeakRequest,
    SpeechDelta,
    StageError,
    TextDelta,
    Transcript,
    WriteOutput,
    WriteRequest,
)
from pipelines.weights import ModelMissing

HERE = "tests.pipelines.runtime.worker_stages"


def speaker(ms_per_word: float = 10.0, real_time_factor: float = 0.0) -> FakeSpeaker:
    return FakeSpeaker(ms_per_word=ms_per_word, real_time_factor=real_time_factor)


def writer(text: str) -> FakeWriter:
    return FakeWriter([words(text)])


def recogniser() -> FakeRecogniser:
    return FakeRecogniser(lambda request, samples: f"{request.prompt}{samples}")


# ---- a stage that does what the pushed words say -------------------------------------------------


def hang() -> None:
    """The loop stands still."""
    time.sleep(3600)


async def _obey(
    request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
) -> AsyncIterator[SpeechDelta | str]:
    async for text in inputs:
        match text.split():
            case ["exit", status]:
                os._exit(int(status))
            case ["hang"]:
                hang()
            case ["noise"]:
                STAGE_CODEC.encode = lambda value: [b"\xc1"]
            case ["fail"]:
                raise StageError("told_to_fail", "It was told so: \u00fc\u4f60\U0001f600")
            case ["break"]:
                raise ZeroDivisionError("by nothing")
            case ["doubles"]:
                yield SpeechDelta(np.zeros(3), 24_000, 0)  # type: ignore[arg-type]
            case ["urgency"]:
                yield ticket.urgency.name
            case ["big", samples]:
                yield SpeechDelta(np.arange(int(samples), dtype=np.float32), 24_000, 1)
            case ["count", outputs]:
                for number in range(int(outputs)):
                    yield str(number)
            case ["pid"]:
                yield str(os.getpid())
            case _:
                yield text


def obedient(output_limit: int = 64) -> AsyncDuplexStage[SpeakRequest, str, SpeechDelta | str]:
    return AsyncDuplexStage("obedient", _obey, output_limit=output_limit)


# ---- a stage whose progress another process can see ----------------------------------------------


def note(path: str) -> None:
    """Make a file one byte longer."""
    with Path(path).open("ab") as file:
        file.write(b".")


def counter(made: str) -> AsyncDuplexStage[SpeakRequest, str, str]:
    """Makes numbers without end; the file `made` is as long as there are numbers."""

    async def count(
        request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
    ) -> AsyncIterator[str]:
        for number in range(100_000):
            note(made)
            yield str(number)

    return AsyncDuplexStage("counter", count, output_limit=4)


def slow_eater(taken: str) -> AsyncDuplexStage[SpeakRequest, str, str]:
    """Takes an input whenever the file `taken` grows."""

    class Eater(AsyncDuplexStage[SpeakRequest, str, str]):
        def open(self, request: SpeakRequest) -> _Narrow:  # type: ignore[override]
            return _Narrow(Path(taken))

    async def nothing(
        request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
    ) -> AsyncIterator[str]:
        yield ""

    return Eater("eater", nothing)


class _Narrow:
    """A stream that lets one input in for each byte of a file."""

    def __init__(self, allowed: Path) -> None:
        self._allowed = allowed
        self._eaten = 0
        self._outputs: asyncio.Queue[str | None] = asyncio.Queue(1000)

    async def push(self, item: str) -> None:
        while self._allowed.stat().st_size <= self._eaten:
            await asyncio.sleep(0.001)
        self._eaten += 1
        await self._outputs.put(item)

    async def finish(self) -> None:
        await self._outputs.put(None)

    def __aiter__(self) -> _Narrow:
        return self

    async def __anext__(self) -> str:
        item = await self._outputs.get()
        if item is None:
            raise StopAsyncIteration
        return item

    def abort(self) -> None:
        self._outputs.put_nowait(None)

    def hurry(self, urgency: object) -> None:
        pass


# ---- stages that start badly ---------------------------------------------------------------------


def is_first(path: str) -> bool:
    """True once, in whatever process."""
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class BadStart(AsyncDuplexStage[RecogniseRequest, Samples, Transcript]):
    """Starts as it is told: says lines, then loads, fails, exits or waits for ever."""

    def __init__(self, how: str, once: str | None = None) -> None:
        self._how = how
        self._once = once
        super().__init__("bad", FakeRecogniser()._hear)

    async def start(self, progress: Progress) -> None:
        progress("first line")
        await asyncio.to_thread(lambda: None)
        progress("second line: \u00e9")
        if self._once is not None and is_first(self._once):
            pass
        elif self._how == "missing":
            raise ModelMissing("The model file toy.bin is missing: run `parley models fetch toy`.")
        elif self._how == "stage error":
            raise StageError("no_device", "There is no such device: choose another.")
        elif self._how == "odd":
            raise UnicodeDecodeError("utf-8", b"x", 0, 1, "odd")
        elif self._how == "exit":
            os._exit(7)
        elif self._how == "never":
            await asyncio.Event().wait()
        await super().start(progress)


def bad_start(how: str, once: str | None = None) -> BadStart:
    return BadStart(how, once)


def of_folder(folder: str) -> AsyncDuplexStage[SpeakRequest, str, SpeechDelta | str]:
    """An obedient one, as long as the folder of its model is there."""
    if not Path(folder).is_dir():
        raise ModelMissing(f"there is no {folder}: fetch it")
    return obedient()


# ---- a stage with a thread -----------------------------------------------------------------------


def stubborn(released: str) -> SelfScheduledStage[WriteRequest, WriteOutput]:
    """Frees an aborted request only when the file `released` exists; the request "quick" ends by
    itself."""

    def run(model: None, request: WriteRequest, ticket: Ticket, emit: Emit[WriteOutput]) -> None:
        emit(TextDelta("on"))
        if request.request_id == "quick":
            for _ in range(50):
                emit(TextDelta("more"))
            return
        aborted = threading.Event()
        ticket.on_abort(aborted.set)
        aborted.wait(30)
        while not Path(released).exists():
            time.sleep(0.001)

    return SelfScheduledStage("stubborn", lambda progress: None, run, None, threads=2)


def modules() -> AsyncDuplexStage[SpeakRequest, str, str]:
    """Tells which packages this process has imported."""

    async def tell(
        request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
    ) -> AsyncIterator[str]:
        for name in sorted({name.partition(".")[0] for name in sys.modules}):
            yield name

    return AsyncDuplexStage("modules", tell)


def talkative() -> AsyncDuplexStage[SpeakRequest, str, str]:
    """Logs each input as three loggers would."""

    async def log(
        request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
    ) -> AsyncIterator[str]:
        async for text in inputs:
            logging.getLogger("httpx").info("HTTP Request: POST %s", text)
            logging.getLogger("httpx").warning("odd answer to %s", text)
            logging.getLogger("pipelines.stage").info("said %s", text)
            yield text

    return AsyncDuplexStage("talkative", log)


def variable(name: str) -> AsyncDuplexStage[SpeakRequest, str, str]:
    """Tells a variable of its environment."""

    async def tell(
        request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
    ) -> AsyncIterator[str]:
        yield os.environ[name]

    return AsyncDuplexStage("variable", tell)


class Unclosable(AsyncDuplexStage[SpeakRequest, str, "SpeechDelta | str"]):
    """Never closes."""

    async def close(self) -> None:
        await asyncio.Event().wait()


def unclosable() -> Unclosable:
    return Unclosable("unclosable", _obey)


class MeteredStage(AsyncDuplexStage[SpeakRequest, str, "SpeechDelta | str"]):
    def __init__(self, broken: bool) -> None:
        self._broken = broken
        super().__init__("metered", _obey)

    @property
    def stats(self) -> StageStats:
        capacity = Capacity(8.0, 2.5, "a lot" if self._broken else 16.0)  # type: ignore[arg-type]
        return StageStats("inner", 99, slots=16, slots_used=3, aborts=99, capacity=capacity)


def metered(broken: bool = False) -> MeteredStage:
    return MeteredStage(broken)
