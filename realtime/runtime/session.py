"""One session from its first event to its last task: all it owns lives in one task group.

Its clients come and go (`connection.py`); the conversation, what was heard, and the stages' work
stay. A session that may be resumed outlives its sockets for a while: it is parked.
"""

from __future__ import annotations

import asyncio
import logging

from pipelines.ports import Cascade, Detector
from pipelines.types import StageError
from realtime.observe.metrics import Count, Metrics
from realtime.protocol.encode import Encoder
from realtime.runtime.clock import Clock, LoopClock
from realtime.runtime.connection import CLOSE_NORMAL, Connection, Line, Loss
from realtime.runtime.conversation import Conversation
from realtime.runtime.egress import Egress
from realtime.runtime.parking import Parking, SessionOver
from realtime.runtime.recorder import FileRecorder
from realtime.runtime.shell import SessionSetup, Shell
from realtime.runtime.transport import Transport
from realtime.session.events import Disconnected, Reconnected, ShutDown
from realtime.session.machine import Machine

log = logging.getLogger(__name__)

# RFC 6455, 7.4.1 and the registry that it names.
CLOSE_GOING_AWAY = 1001
CLOSE_CRASHED = 1011
CLOSE_TRY_LATER = 1013
# Of the codes for private use: a page that lost its conversation to another one must not come back
# for it, and cannot know by 1001 alone.
CLOSE_TAKEN_OVER = 4001

TAKEN_OVER = Loss(CLOSE_TAKEN_OVER, "The session goes on over another connection.", is_silent=True)


class SessionRuntime:
    """Serves one conversation: the client on `transport`, and whoever comes back for it.

    conversation: the machine; a fresh one unless a test brings its own. encoder: numbers what the
    first client is sent; one with random event ids unless given. parking: gives out the tokens
    with which a lost client comes back; without it, or without `setup.resume_ms`, none does.
    wants_details: whether the first client asks for more than the standard events.
    """

    def __init__(
        self,
        transport: Transport,
        cascade: Cascade,
        setup: SessionSetup,
        *,
        metrics: Metrics | None = None,
        clock: Clock | None = None,
        conversation: Conversation | None = None,
        encoder: Encoder | None = None,
        parking: Parking | None = None,
        wants_details: bool = False,
    ) -> None:
        self._cascade = cascade
        self._setup = setup
        self._metrics = metrics or Metrics()
        self._clock = clock or LoopClock()
        self._conversation = conversation or Machine()
        self._parking = parking if setup.resume_ms > 0 else None
        self._egress = Egress(setup.lead_ms)
        self._line = Line()
        self._shell: Shell | None = None
        self._group: asyncio.TaskGroup | None = None
        self._first = (transport, encoder or Encoder(), wants_details)
        self._connection: Connection | None = None
        self._former: Connection | None = None  # the last one that was lost
        self._ending = (CLOSE_NORMAL, "")

    @property
    def label(self) -> str:
        return self._setup.label

    @property
    def is_parked(self) -> bool:
        """Whether its client is lost, and awaited."""
        return self._connection is None

    @property
    def open_requests(self) -> int:
        """Stage requests of this session that have not been reaped yet."""
        return self._shell.works.open_requests if self._shell is not None else 0

    def shut_down(self, within_ms: float) -> None:
        """Finish what is being said, then close. Returns at once; `run` ends soon after the time.

        Whoever is cut short is told so, as by any other interruption.
        """
        if self._shell is not None:
            self._shell.driver.handle(ShutDown(within_ms))

    async def run(self) -> None:
        """Returns when the session is over and everything is freed; raises only cancellation."""
        self._metrics.add(Count.SESSIONS_OPENED)
        first = self._connection = self._connect(*self._first)
        try:
            await self._serve(first)
        except StageError as error:
            log.warning("%s cannot begin: %s: %s", self.label, error.code, error.message)
            self._ending = (CLOSE_TRY_LATER, error.code)
            await self._say_why(error.code, error.message)
        except asyncio.CancelledError:
            self._ending = (CLOSE_GOING_AWAY, "The server is shutting down.")
            raise
        except Exception:
            self._metrics.add(Count.SESSIONS_CRASHED)
            log.exception("%s crashed", self.label)
            self._ending = (CLOSE_CRASHED, "internal error")
            await self._say_why(
                "internal_error",
                "The session failed; the server's log has the details. Connect again to go on.",
            )
        finally:
            self._metrics.add(Count.SESSIONS_CLOSED)
            if self._parking is not None:
                self._parking.forget(self)
            await self._close_connection()

    async def attach(self, transport: Transport, wants_details: bool = False) -> None:
        """Go on with a client that has come back; returns when that one is gone in turn.

        The former connection may not know yet that it is dead: it is closed. Raises SessionOver
        before anything was sent.
        """
        shell = self._live_shell()
        if self._connection is not None:
            self._let_go(self._connection, TAKEN_OVER)
        shell.driver.settle_loss()
        if self._former is not None:
            await self._former.reading_ended()
            self._former = None
        shell = self._live_shell()
        assert self._group is not None  # as long as the shell lives
        connection = self._connection = self._connect(transport, Encoder(), wants_details)
        self._line.connect(connection.outlet)
        shell.ears.restart()
        connection.start(self._group, shell.ingress)
        shell.driver.handle(Reconnected(shell.hearing.position))
        self._metrics.add(Count.SESSIONS_RESUMED)
        log.info("%s is resumed", self.label)
        try:
            await connection.has_ended.wait()
        finally:
            self._on_lost(connection, Loss(CLOSE_GOING_AWAY, "", is_silent=True))

    def _live_shell(self) -> Shell:
        if self._shell is None or self._group is None or self._shell.driver.is_over:
            raise SessionOver
        return self._shell

    async def _serve(self, first: Connection) -> None:
        detector = self._cascade.detect()
        try:
            recorder = self._open_record()
            try:
                await self._live(first, detector, recorder)
            finally:
                if recorder is not None:
                    await asyncio.to_thread(recorder.close)
        finally:
            detector.close()

    def _open_record(self) -> FileRecorder | None:
        """A record that cannot be written is no reason to refuse a conversation."""
        path = self._setup.record_path
        if path is None:
            return None
        try:
            return FileRecorder(path, self._metrics)
        except OSError as error:
            log.warning("%s is not recorded: %s", self.label, error)
            return None

    async def _live(
        self, first: Connection, detector: Detector, recorder: FileRecorder | None
    ) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            shell = self._shell = Shell(
                group=group,
                cascade=self._cascade,
                detector=detector,
                egress=self._egress,
                outlet=self._line,
                conversation=self._conversation,
                clock=self._clock,
                setup=self._setup,
                metrics=self._metrics,
                recorder=recorder,
            )
            self._line.connect(first.outlet)
            first.start(group, shell.ingress)
            try:
                shell.driver.handle(self._setup.opened())
                await shell.driver.run()
            finally:
                self._group = None  # nobody comes back any more
                last = self._connection
                if last is not None:
                    last.stop_reading()
                shell.close()
            # Whatever the machine has said last still goes out to a client that reads.
            if last is not None:
                await last.finish(*self._ending)
            else:
                log.info("%s ends: its client did not come back", self.label)

    def _connect(self, transport: Transport, encoder: Encoder, wants_details: bool) -> Connection:
        greeting = None
        if self._parking is not None:
            token = self._parking.issue(self)
            greeting = {"resume": {"token": token, "within_ms": int(self._setup.resume_ms)}}
        return Connection(
            transport,
            encoder,
            self._metrics,
            is_current=self._egress.is_current,
            on_room=self._on_room,
            on_lost=self._on_lost,
            on_first=self._on_first,
            greeting=greeting,
            wants_details=wants_details,
        )

    def _on_room(self) -> None:
        if self._shell is not None:
            self._shell.driver.wake()

    def _on_first(self) -> None:
        if self._parking is not None:
            self._parking.confirm(self)

    def _on_lost(self, connection: Connection, loss: Loss) -> None:
        shell = self._shell
        if connection is not self._connection or shell is None or shell.driver.is_over:
            return
        if self._parking is not None and self._group is not None and not loss.is_final:
            self._let_go(connection, loss)
        else:
            self._ending = (loss.code, loss.reason)
            shell.driver.lose_client()

    def _let_go(self, connection: Connection, loss: Loss) -> None:
        """Park the session: its client is lost."""
        assert self._shell is not None and self._group is not None
        self._connection, self._former = None, connection
        self._line.disconnect()
        connection.stop_reading()
        farewell = connection.drop(loss.code, loss.reason)
        closing = self._group.create_task(farewell, name="farewell")
        closing.add_done_callback(lambda _: connection.has_ended.set())  # even if it never ran
        self._shell.driver.lose_client(Disconnected(True, connection.unsent, loss.is_silent))
        self._metrics.add(Count.SESSIONS_PARKED)
        log.info(
            "%s is parked for up to %g s: %s",
            self.label,
            self._setup.resume_ms / 1000,
            loss.reason or "its client is lost",
        )

    async def _close_connection(self) -> None:
        if self._connection is not None:
            await self._connection.close(*self._ending)

    async def _say_why(self, code: str, message: str) -> None:
        if self._connection is None or not await self._connection.say_why(code, message):
            log.info("%s: the client had gone before it could be told of %s", self.label, code)
