"""`sglang.Engine` in a thread of its own, with an event loop of its own.

The engine expects to own its process: on the main thread it would take the signals of whoever hosts
it, and it blocks for a minute while it loads. In its own thread it does neither. Its scheduler is a
process that lives as long as that thread.

A request is followed to its end, also when nobody wants it any more: only then has the engine freed
what it holds, and an abort that overtakes its own request is repeated.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import threading
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipelines.runtime.handover import hand_over

log = logging.getLogger(__name__)

ENGINE_DIED = 70  # the exit status of a process whose engine has died
CLOSE_TIMEOUT_S = 75.0  # the engine itself waits 60 s for its processes
END_TIMEOUT_S = 10.0  # of an aborted request: an abort takes a step, a long prefill a second
# How the engine says that a prompt is longer than it can read.
TOO_LONG = ("context length", "maximum allowed length", "KV memory budget")
BUSY_STATUS = 503  # with which a full queue answers

MakeEngine = Callable[[], Any]


class EngineFailed(Exception):
    """The engine refused or failed a request; the message is its own.

    is_too_long: the prompt; is_busy: too many others wait.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.is_too_long = any(words in message for words in TOO_LONG)
        self.is_busy = status == BUSY_STATUS


@dataclass(frozen=True, slots=True)
class Piece:
    """What has come since the last piece. end: stop or length; None: more comes."""

    ids: tuple[int, ...]
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    end: str | None


class Generation:
    """One request, seen from the loop that began it: iterate, abort, and wait until it has ended.

    What waits here is bounded by the tokens of the request.
    """

    def __init__(self, abort: Callable[[Generation], None]) -> None:
        # The engine takes an abort for all ids that begin alike, so all are of one length.
        self.rid = uuid.uuid4().hex
        self.is_aborted = False
        self._loop = asyncio.get_running_loop()
        self._abort = abort
        self._pieces: deque[Piece] = deque()
        self._failure: EngineFailed | None = None
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()

    def __aiter__(self) -> AsyncIterator[Piece]:
        return self

    async def __anext__(self) -> Piece:
        while not self._pieces:
            if self._ended.is_set():
                if self._failure is not None and not self.is_aborted:
                    raise self._failure
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return self._pieces.popleft()

    def abort(self) -> None:
        """End it now; idempotent, and nothing to one that has ended."""
        if not self.is_aborted and not self._ended.is_set():
            self.is_aborted = True
            self._abort(self)

    async def ended(self) -> None:
        """Until the engine has nothing left of it. Bounded."""
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                await self._ended.wait()
        except TimeoutError:
            log.error("the language model's engine does not end request %s", self.rid)

    # ---- the engine's thread -----------------------------------------------------------------

    def tell(self, piece: Piece) -> None:
        hand_over(self._loop, partial(self._take, piece))

    def end(self, failure: EngineFailed | None) -> None:
        hand_over(self._loop, partial(self._finish, failure))

    def _take(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self._changed.set()

    def _finish(self, failure: EngineFailed | None) -> None:
        self._failure = failure
        self._ended.set()
        self._changed.set()


class EngineThread:
    """Hosts what `make` makes: something with the methods of `sglang.Engine`."""

    def __init__(self, make: MakeEngine) -> None:
        self._make = make
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._stop: asyncio.Event | None = None
        self._engine: Any = None
        self._takes_priority = False
        self._lock = threading.Lock()  # of the two below, which both threads change
        self._generations: set[Generation] = set()  # those that have not ended
        self._is_over = False

    async def start(self) -> None:
        """Make the engine, which takes minutes. What `make` raises passes through."""
        loop = asyncio.get_running_loop()
        started: asyncio.Future[None] = loop.create_future()

        def tell(failure: BaseException | None) -> None:
            if started.done():
                return
            if failure is None:
                started.set_result(None)
            else:
                started.set_exception(failure)

        self._thread = threading.Thread(
            target=self._live,
            args=(lambda failure=None: hand_over(loop, partial(tell, failure)),),
            name="sglang",
            daemon=True,  # a library that reads weights cannot be interrupted
        )
        self._watch_for_death(loop)
        self._thread.start()
        await started

    async def close(self) -> None:
        """End the engine and its processes."""
        if self._loop is not None and self._stop is not None:
            hand_over(self._loop, self._stop.set)
        if self._thread is not None and self._loop is not None:
            await asyncio.to_thread(self._thread.join, CLOSE_TIMEOUT_S)

    def begin(
        self, ids: Sequence[int], sampling: Mapping[str, Any], priority: int | None = None
    ) -> Generation:
        """Begin a request. sampling: as the engine's sampling parameters are called."""
        assert self._loop is not None
        generation = Generation(self._forward_abort)
        call: dict[str, Any] = {
            "input_ids": list(ids),
            "sampling_params": dict(sampling),
            "stream": True,
            "rid": generation.rid,
        }
        if self._takes_priority and priority is not None:
            call["priority"] = priority
        with self._lock:
            is_late = self._is_over
            if not is_late:
                self._generations.add(generation)
        if is_late or not hand_over(self._loop, partial(self._spawn, generation, call)):
            self._end(generation, EngineFailed("the engine has ended"))
        return generation

    def _forward_abort(self, generation: Generation) -> None:
        if self._loop is not None:
            hand_over(self._loop, partial(self._abort, generation.rid))

    def _end(self, generation: Generation, failure: EngineFailed | None) -> None:
        with self._lock:
            self._generations.discard(generation)
        generation.end(failure)

    # ---- in the thread -----------------------------------------------------------------------

    def _live(self, tell: Callable[..., object]) -> None:
        try:
            self._engine = self._make()
            parameters = inspect.signature(self._engine.async_generate).parameters
            self._takes_priority = "priority" in parameters
            with asyncio.Runner() as runner:
                runner.run(self._serve(tell))
        except BaseException as error:
            tell(error)
            log.debug("the engine's thread ends", exc_info=True)
        finally:
            self._end_all()
            engine, self._engine = self._engine, None
            if engine is not None:
                engine.shutdown()

    def _end_all(self) -> None:
        """For those whose task was cancelled before it began, or that the loop never came to."""
        with self._lock:
            self._is_over = True
            left = list(self._generations)
        for generation in left:
            self._end(generation, EngineFailed("the engine was stopped"))

    async def _serve(self, tell: Callable[..., object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            tell()
            await self._stop.wait()
            self._tasks = None
            for task in asyncio.all_tasks(self._loop) - {asyncio.current_task()}:
                task.cancel()

    def _spawn(self, generation: Generation, call: dict[str, Any]) -> None:
        if self._tasks is None:
            self._end(generation, EngineFailed("the engine is being stopped"))
            return
        self._tasks.create_task(self._follow(generation, call), name=f"llm-{generation.rid}")

    async def _follow(self, generation: Generation, call: dict[str, Any]) -> None:
        failure: EngineFailed | None = EngineFailed("the engine was stopped")
        try:
            if generation.is_aborted:
                return  # the engine never hears of it
            seen = 0
            async with aclosing(await self._engine.async_generate(**call)) as chunks:
                async for chunk in chunks:
                    if generation.is_aborted:
                        # The engine passes over an abort of a request that it does not know yet.
                        self._abort(generation.rid)
                        continue
                    ids: list[int] = chunk["output_ids"]  # all of them so far
                    generation.tell(_piece(ids[seen:], chunk["meta_info"]))
                    seen = len(ids)
            failure = None
        except EngineFailed as error:
            failure = error
        except Exception as error:
            failure = EngineFailed(str(error) or type(error).__name__)
        finally:
            self._end(generation, failure)

    def _abort(self, rid: str) -> None:
        if self._engine is not None:
            self._engine.tokenizer_manager.abort_request(rid=rid)

    # ---- death -------------------------------------------------------------------------------

    def _watch_for_death(self, loop: asyncio.AbstractEventLoop) -> None:
        """When a process of the engine dies, the engine sends SIGQUIT to its own process.

        Nothing can be mended here: the process ends, so that whoever started it sees that and
        starts another. While the engine loads it also says what is wrong, which is worth more.
        """
        with suppress(RuntimeError, ValueError, NotImplementedError):  # not on the main thread
            loop.add_signal_handler(signal.SIGQUIT, self._die)

    def _die(self) -> None:
        if self._loop is None:
            log.error("a process of the language model's engine has died while it loaded")
            return
        log.critical("a process of the language model's engine has died: ending this process too")
        logging.shutdown()
        os._exit(ENGINE_DIED)


def _piece(ids: Sequence[int], meta: Mapping[str, Any]) -> Piece:
    """Raises EngineFailed for a request that the engine ended of its own accord."""
    reason: Mapping[str, Any] = meta.get("finish_reason") or {}
    end = str(reason["type"]) if reason else None
    if end == "abort":
        raise EngineFailed(str(reason.get("message")), status=reason.get("status_code"))
    return Piece(
        tuple(ids),
        input_tokens=int(meta.get("prompt_tokens", 0)),
        cached_tokens=int(meta.get("cached_tokens", 0)),
        output_tokens=int(meta.get("completion_tokens", 0)),
        end=end,
    )
