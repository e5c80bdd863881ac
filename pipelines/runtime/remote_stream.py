"""One request whose stage runs in a worker process, as its owner sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from pipelines.runtime.messages import Abort, Finish, Hurry, Open, Push, Read, ToWorker
from pipelines.runtime.outlet import Outlet
from pipelines.runtime.ticket import StageRequest, Ticket
from pipelines.types import StageError, Urgency

In = TypeVar("In")
Out = TypeVar("Out")

Send = Callable[[ToWorker], None]


class RemoteStream(Generic[In, Out]):
    """A stream (`pipelines.ports.Stream`) that speaks to a worker once there is one.

    What the owner does before that is kept, at most a window of inputs, and said in order.

    send: says a message to the worker; errors are its own to handle.
    """

    def __init__(
        self, stage: str, number: int, request: StageRequest, input_window: int, output_window: int
    ) -> None:
        self.number = number
        self.ticket = Ticket.of(request)
        self._request = request
        self._send: Send | None = None
        self._kept: list[ToWorker] = []
        self._finished = False
        self._over = False
        self._may_push = input_window
        self._changed = asyncio.Event()
        self._unreported = 0  # outputs that the owner took since the worker was last told
        self._report_at = max(1, output_window // 2)
        # The worker sends no more than the window, so the outlet always has room.
        self._outlet: Outlet[Out] = Outlet(stage, self.ticket, output_window, lambda: None)
        self.ticket.on_abort(self._on_abort)

    # ---- the owner's side --------------------------------------------------------------------

    async def push(self, item: In) -> None:
        while self._accepts and self._may_push == 0:
            self._changed.clear()
            await self._changed.wait()
        if self._accepts:
            self._may_push -= 1
            self._say(Push(self.number, item))

    async def finish(self) -> None:
        if self._accepts:
            self._finished = True
            self._changed.set()
            self._say(Finish(self.number))

    def __aiter__(self) -> AsyncIterator[Out]:
        return self

    async def __anext__(self) -> Out:
        output = await self._outlet.next()
        self._unreported += 1
        if self._unreported >= self._report_at and not self._over:
            self._say(Read(self.number, self._unreported))
            self._unreported = 0
        return output

    def abort(self) -> None:
        self.ticket.abort()

    def hurry(self, urgency: Urgency) -> None:
        self.ticket.hurry(urgency)
        if not self._over and not self.ticket.aborted:
            self._say(Hurry(self.number, urgency))

    # ---- the stage's side --------------------------------------------------------------------

    @property
    def attached(self) -> bool:
        """Whether the worker knows of this request."""
        return self._send is not None

    def attach(self, send: Send) -> None:
        """There is a worker: tell it all that it missed."""
        self._send = send
        send(Open(self.number, self._request))
        kept, self._kept = self._kept, []
        for message in kept:
            if not self._over:  # telling may fail, which ends the request
                send(message)

    def put(self, output: Out) -> None:
        self._outlet.put(output)

    def allow(self, inputs: int) -> None:
        """The stage took so many."""
        self._may_push += inputs
        self._changed.set()

    def end(self, error: StageError | None) -> None:
        """Nothing more comes, and nothing more is said."""
        self._over = True
        self._kept.clear()
        self._changed.set()
        self._outlet.end(error)

    @property
    def _accepts(self) -> bool:
        return not (self._finished or self._over or self.ticket.aborted)

    def _say(self, message: ToWorker) -> None:
        if self._send is None:
            self._kept.append(message)
        else:
            self._send(message)

    def _on_abort(self) -> None:
        self._kept.clear()
        self._changed.set()
        if self._send is not None and not self._over:
            self._send(Abort(self.number))
