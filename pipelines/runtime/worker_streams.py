"""One request in a worker, between the line to the server and the stage."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from pipelines.ports import Stream
from pipelines.runtime.failures import stage_failed
from pipelines.runtime.message_codec import MessageError
from pipelines.runtime.messages import FromWorker, Output, Taken
from pipelines.types import StageError, Urgency

logger = logging.getLogger(__name__)


class CarriedStream:
    """Feeds what the server pushes, and sends what the stage makes while the reader has room."""

    def __init__(
        self,
        stage: str,
        number: int,
        stream: Stream[Any, Any],
        output_window: int,
        send: Callable[[FromWorker], None],
    ) -> None:
        self.number = number
        self.aborted = False
        self._stage = stage
        self._stream = stream
        self._send = send
        self._may_send = output_window
        self._room = asyncio.Event()
        self._inputs: deque[Any] = deque()  # no longer than the server's window
        self._finished = False
        self._arrived = asyncio.Event()
        self._feeding_error: StageError | None = None

    # ---- what the server says ----------------------------------------------------------------

    def push(self, item: object) -> None:
        self._inputs.append(item)
        self._arrived.set()

    def finish(self) -> None:
        self._finished = True
        self._arrived.set()

    def read(self, outputs: int) -> None:
        self._may_send += outputs
        self._room.set()

    def hurry(self, urgency: Urgency) -> None:
        self._stream.hurry(urgency)

    def abort(self) -> None:
        """Whoever holds the task of `run` cancels it as well."""
        self.aborted = True
        self._inputs.clear()
        self._stream.abort()

    @property
    def is_reaped(self) -> bool:
        """Whether the stage has nothing left of it, though outputs of it may still wait here."""
        return bool(getattr(self._stream, "is_reaped", False))  # of streams that tell

    # ---- the work ----------------------------------------------------------------------------

    async def run(self) -> StageError | None:
        """Until the stream has ended; the error that it ended with, if any."""
        async with asyncio.TaskGroup() as tasks:
            feeding = tasks.create_task(self._feed(), name=f"{self._stage}-feeding")
            try:
                error = await self._forward()
            finally:
                feeding.cancel()
        if error is not None:
            self._stream.abort()
        return self._feeding_error or error

    async def _forward(self) -> StageError | None:
        try:
            outputs = aiter(self._stream)
            while True:
                while self._may_send == 0:
                    self._room.clear()
                    await self._room.wait()
                output = await anext(outputs)
                if self.aborted:
                    return None
                self._may_send -= 1
                self._send(Output(self.number, output))
        except StopAsyncIteration:
            return None
        except Exception as error:
            return self._failed(error)

    async def _feed(self) -> None:
        try:
            while True:
                taken = 0
                while self._inputs:
                    await self._stream.push(self._inputs.popleft())
                    taken += 1
                if taken:
                    self._send(Taken(self.number, taken))
                if self._finished:
                    await self._stream.finish()
                    return
                self._arrived.clear()
                await self._arrived.wait()
        except Exception as error:
            self._feeding_error = self._failed(error)
            self._stream.abort()

    def _failed(self, error: Exception) -> StageError:
        if isinstance(error, StageError):
            return error
        if not isinstance(error, MessageError):
            logger.error("stage %s failed on a request", self._stage, exc_info=error)
        cause = f"{type(error).__name__}: {error}"
        return stage_failed(self._stage, f"{self._stage}_failed", cause)
