"""One client on one transport: what it sends is read in order, what it is told is written.

A session has one at a time, and none while it is parked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from realtime.observe.metrics import Metrics
from realtime.protocol.encode import Encoder
from realtime.runtime.egress import Frame
from realtime.runtime.ingress import Ingress, Intake, read_messages
from realtime.runtime.outbound import Outbound
from realtime.runtime.outlet import Clip, Outlet, WireOutlet
from realtime.runtime.transport import Transport, TransportClosed
from realtime.session.effects import TellConversation
from realtime.session.items import Item
from realtime.session.notices import Detail, ErrorRaised, Notice

log = logging.getLogger(__name__)

_CLOSE_GRACE_S = 5.0  # for the last events to reach a client that still reads
_FAREWELL_S = 2.0  # for one error event and the closing handshake

CLOSE_NORMAL = 1000  # RFC 6455, 7.4.1


@dataclass(frozen=True, slots=True)
class Loss:
    """How a connection ended. code, reason: what its transport is closed with.

    is_final: the client said that it will not come back. is_silent: it said nothing at all.
    """

    code: int
    reason: str
    is_final: bool = False
    is_silent: bool = False


class Connection:
    """greeting: what stands in `session.created` under `parley`. wants_details: whether the client
    asks for more than the standard events.

    is_current(lane, epoch): whether a frame of audio may still leave. on_room: the socket takes
    more audio. on_first: the client has said something, the first time. on_lost: told at most once,
    from anywhere, when the client is gone.
    """

    def __init__(
        self,
        transport: Transport,
        encoder: Encoder,
        metrics: Metrics,
        *,
        is_current: Callable[[str, int], bool],
        on_room: Callable[[], None],
        on_lost: Callable[[Connection, Loss], None],
        on_first: Callable[[], None] = lambda: None,
        greeting: Mapping[str, Any] | None = None,
        wants_details: bool = False,
    ) -> None:
        self._transport = transport
        self._encoder = encoder
        self._on_lost = on_lost
        self._on_first = on_first
        self._outbound = Outbound(is_current, metrics, on_room, self._lose_writing)
        self._intake = Intake()
        self._writing: asyncio.Task[None] | None = None
        self._reading = set[asyncio.Task[None]]()
        self._is_lost = False
        self.has_ended = asyncio.Event()  # the transport is closed
        self.outlet: Outlet = WireOutlet(encoder, self._outbound, greeting, wants_details)

    def start(self, group: asyncio.TaskGroup, ingress: Ingress) -> None:
        """Read into `ingress`, which no other connection may do meanwhile."""
        self._writing = group.create_task(self._outbound.run(self._transport), name="writer")
        handling = ingress.run(self._intake, self._outbound.uncrowded)
        self._reading = {
            group.create_task(self._read(), name="reader"),
            group.create_task(handling, name="ingress"),
        }

    @property
    def unsent(self) -> tuple[tuple[str, int], ...]:
        """(item, samples) of audio that never reached the network."""
        return self._outbound.unsent

    def stop_reading(self) -> None:
        for task in self._reading:
            task.cancel()

    async def reading_ended(self) -> None:
        """Wait until nothing of this client is handled any more."""
        if self._reading:
            await asyncio.wait(self._reading)

    async def drop(self, code: int, reason: str) -> None:
        """Close at once: the client is lost, or has been replaced. Nothing is read any more."""
        if self._writing is not None:
            self._writing.cancel()
        await self.close(code, reason)

    async def finish(self, code: int, reason: str) -> None:
        """Send what waits to a client that still reads, then close."""
        self._outbound.put_close(code, reason)
        if self._writing is not None:
            await asyncio.wait({self._writing}, timeout=_CLOSE_GRACE_S)
            self._writing.cancel()

    async def say_why(self, code: str, message: str) -> bool:
        """One error event past the queue. False: the client had gone before."""
        notice = ErrorRaised("server_error", code, message)
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await self._transport.send(self._encoder.encode(notice))
        except (TimeoutError, TransportClosed, OSError):
            return False
        return True

    async def close(self, code: int, reason: str) -> None:
        """Idempotent and bounded."""
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await self._transport.close(code, reason)
        except TimeoutError:
            log.info("a closing handshake was not answered")
        finally:
            self.has_ended.set()

    async def _read(self) -> None:
        await read_messages(self._transport, self._intake, self._on_first)
        code = self._transport.client_close_code
        self._lose(Loss(CLOSE_NORMAL, "", code == CLOSE_NORMAL, is_silent=code is None))

    def _lose_writing(self, code: int, reason: str) -> None:
        self._lose(Loss(code, reason, is_silent=True))

    def _lose(self, loss: Loss) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._on_lost(self, loss)


class Line:
    """The session's outlet: that of the present connection, or nowhere. What nobody is told is not
    lost: whoever comes back is told of the conversation."""

    def __init__(self) -> None:
        self._outlet: Outlet | None = None

    def connect(self, outlet: Outlet) -> None:
        self._outlet = outlet

    def disconnect(self) -> None:
        self._outlet = None

    @property
    def has_audio_room(self) -> bool:
        return self._outlet is not None and self._outlet.has_audio_room

    def tell(self, notice: Notice) -> None:
        if self._outlet is not None:
            self._outlet.tell(notice)

    def tell_detail(self, detail: Detail) -> None:
        if self._outlet is not None:
            self._outlet.tell_detail(detail)

    def tell_conversation(self, told: TellConversation) -> None:
        if self._outlet is not None:
            self._outlet.tell_conversation(told)

    def tell_retrieved(self, item: Item, clips: Mapping[int, Clip]) -> None:
        if self._outlet is not None:
            self._outlet.tell_retrieved(item, clips)

    def send(self, frame: Frame) -> None:
        if self._outlet is not None:
            self._outlet.send(frame)

    def first_stale(self, lane: str) -> Frame | None:
        return self._outlet.first_stale(lane) if self._outlet is not None else None

    def close(self, code: int, reason: str) -> None:
        if self._outlet is not None:
            self._outlet.close(code, reason)
