"""One life of a worker: its process, the line to it, and the signs of life on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import zmq

from pipelines.runtime.message_channel import Channel, connected
from pipelines.runtime.messages import (
    Close,
    FromWorker,
    Hello,
    Loading,
    Ping,
    Start,
    Started,
    StartFailed,
    ToWorker,
)
from pipelines.runtime.worker_failures import exit_of
from pipelines.runtime.worker_folder import SocketFolder
from pipelines.runtime.worker_options import WorkerOptions
from pipelines.runtime.worker_process import WorkerProcess

SILENT_BEATS = 3  # in a row without an answer: one is late on any busy machine

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """Why a life ended. cause: goes on from "the process"."""

    cause: str
    failure: StartFailed | None = None


class WorkerLink:
    """`run` begins the life and returns when it has ended, with nothing left of it.

    Each life has a socket of its own, so nothing that an earlier one said can still arrive.

    on_message: gets everything that the worker says, first of all `Started`.
    """

    def __init__(
        self,
        start: Start,
        options: WorkerOptions,
        on_message: Callable[[FromWorker], None],
    ) -> None:
        self._start = start
        self._options = options
        self._on_message = on_message
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[WorkerEnd] = self._loop.create_future()
        self._process: WorkerProcess | None = None
        self._channel: Channel | None = None
        self._folder: SocketFolder | None = None
        self._stopping = False
        self._heard = True  # since the last beat
        self._silent_beats = 0
        self._awaited_beats = 0  # those of them in which somebody waited for the worker
        self._told_at_s = 0.0  # of its loading, as all times on the loop's clock
        self.born_at_s = self._loop.time()
        self.started_at_s: float | None = None

    @property
    def is_serving(self) -> bool:
        """The stage has loaded, and nothing is known to be wrong with the process."""
        return self.started_at_s is not None and not self._over.done()

    @property
    def is_silent(self) -> bool:
        """It has not answered for a while: perhaps it hangs."""
        return self._silent_beats >= SILENT_BEATS

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def run(self) -> WorkerEnd:
        """Cancelling it kills the process."""
        context: zmq.Context[zmq.Socket[bytes]] | None = None
        try:
            try:
                context = zmq.Context()
                self._folder = SocketFolder()
                self._spawn(context, f"ipc://{self._folder.path}/worker")
            except (OSError, zmq.ZMQError) as error:
                return WorkerEnd(f"could not be made ({error})")
            return await self._watch()
        finally:
            if self._channel is not None:
                self._channel.close()
            if context is not None:
                context.destroy(linger=0)  # at once: nothing waits for anything
            self._remove_folder()
            if self._process is not None:
                await self._process.release()

    def _spawn(self, context: zmq.Context[zmq.Socket[bytes]], endpoint: str) -> None:
        socket = connected(context.socket(zmq.PAIR))
        socket.bind(endpoint)
        self._channel = Channel(socket, self._receive, self._on_broken)
        self._process = WorkerProcess(
            self._start.stage, endpoint, self._options.environment, self._on_exit
        )

    def _remove_folder(self) -> None:
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def send(self, message: ToWorker) -> None:
        """Raises MessageError if the message cannot be sent as it is."""
        if self._channel is not None:
            self._channel.send(message)

    async def stop(self) -> None:
        """Have the worker close its stage and exit; one that does not, or that loads, is killed."""
        self._stopping = True
        if self.started_at_s is not None:
            self.send(Close())
            timeout_s = self._options.close_timeout_s
            await self._ends_within(timeout_s)
            if not self._over.done():
                logger.warning("stage %s was not closed within %g s", self._start.stage, timeout_s)
        self.kill()

    def kill(self) -> None:
        """End the life now: `run` kills what is left of the process."""
        self._settle(WorkerEnd("did not end when it was asked to"))

    async def _ends_within(self, timeout_s: float) -> None:
        await asyncio.wait([self._over], timeout=timeout_s)

    async def _watch(self) -> WorkerEnd:
        self._told_at_s = self._loop.time()
        while True:
            await self._ends_within(self._options.heartbeat_s)
            if self._over.done():
                return self._over.result()
            if self.started_at_s is not None:
                self._beat()
            elif self._loop.time() > self._told_at_s + self._options.start_timeout_s:
                silence_s = self._options.start_timeout_s
                return WorkerEnd(f"did not load, and said nothing for {silence_s:g} s")

    def _beat(self) -> None:
        # Beats are counted, and not the time since the last word: when it was this process that
        # stood still, that says nothing about the worker.
        if self._heard:
            self._silent_beats = 0
            self._heard = False
            self.send(Ping())
            return
        self._silent_beats += 1
        # A stage that closes leaves the loop free, however long it takes, and so is heard. One that
        # hangs while nobody waits is ended as well, or the next who comes would wait for it.
        options = self._options
        longest_s = options.close_silence_s if self._stopping else options.hang_timeout_s
        if self._silent_beats * options.heartbeat_s >= longest_s:
            end = WorkerEnd(f"gave no sign of life for {longest_s:g} s and was killed")
            if self._stopping:
                logger.warning("the process of stage %s %s", self._start.stage, end.cause)
            self._settle(end)

    def _receive(self, message: object) -> None:
        self._heard = True
        match message:
            case Hello():
                self._remove_folder()  # the line needs no name any more, and nothing is left lying
                self.send(self._start)
            case StartFailed():
                self._settle(WorkerEnd(f"reports {message.kind}: {message.message}", message))
            case Loading():
                self._told_at_s = self._loop.time()  # it gets on
                self._on_message(message)
            case Started():
                self.started_at_s = self._loop.time()
                self._on_message(message)
            case _:
                self._on_message(cast("FromWorker", message))

    def _on_broken(self, error: Exception) -> None:
        self._settle(WorkerEnd(f"said what cannot be read ({error}) and was killed"))

    def _on_exit(self, status: int) -> None:
        self._settle(WorkerEnd(exit_of(status)))

    def _settle(self, end: WorkerEnd) -> None:
        if not self._over.done():
            self._over.set_result(end)
