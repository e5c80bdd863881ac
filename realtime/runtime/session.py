"""One session from its first event to its last task: all it owns lives in one task group."""

from __future__ import annotations

import asyncio
import logging

from pipelines.ports import Cascade, Detector
from pipelines.types import StageError
from realtime.observe.metrics import Count, Metrics
from realtime.protocol.encode import Encoder
from realtime.runtime.clock import Clock, LoopClock
from realtime.runtime.conversation import Conversation
from realtime.runtime.egress import Egress
from realtime.runtime.ingress import Intake, read_messages
from realtime.runtime.outbound import Outbound
from realtime.runtime.outlet import WireOutlet
from realtime.runtime.recorder import FileRecorder
from realtime.runtime.shell import SessionSetup, Shell
from realtime.runtime.transport import Transport, TransportClosed
from realtime.session.events import ShutDown
from realtime.session.machine import Machine
from realtime.session.notices import ErrorRaised

log = logging.getLogger(__name__)

_CLOSE_GRACE_S = 5.0  # for the last events to reach a client that still reads
_FAREWELL_S = 2.0  # for one error event and the closing handshake

# RFC 6455, 7.4.1 and the registry that it names.
CLOSE_NORMAL = 1000
CLOSE_CRASHED = 1011
CLOSE_TRY_LATER = 1013


class SessionRuntime:
    """Serves one client on one transport.

    conversation: the machine; a fresh one unless a test brings its own. encoder: numbers what is
    sent; one with random event ids unless given.
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
    ) -> None:
        self._transport = transport
        self._cascade = cascade
        self._setup = setup
        self._metrics = metrics or Metrics()
        self._clock = clock or LoopClock()
        self._conversation = conversation or Machine()
        self._encoder = encoder or Encoder()
        self._shell: Shell | None = None
        self._ending = (CLOSE_NORMAL, "")

    @property
    def label(self) -> str:
        return self._setup.label

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
        try:
            await self._serve()
        except StageError as error:
            log.warning("%s cannot begin: %s: %s", self.label, error.code, error.message)
            self._ending = (CLOSE_TRY_LATER, error.code)
            await self._say_why(error.code, error.message)
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
            await self._close_transport()

    async def _serve(self) -> None:
        detector = self._cascade.detect()
        try:
            recorder = self._open_record()
            try:
                await self._live(detector, recorder)
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

    async def _live(self, detector: Detector, recorder: FileRecorder | None) -> None:
        egress = Egress(self._setup.lead_ms)
        outbound = Outbound(egress.is_current, self._metrics, self._on_room, self._on_lost)
        intake = Intake()
        async with asyncio.TaskGroup() as group:
            shell = self._shell = Shell(
                group=group,
                cascade=self._cascade,
                detector=detector,
                egress=egress,
                outlet=WireOutlet(self._encoder, outbound),
                conversation=self._conversation,
                clock=self._clock,
                setup=self._setup,
                metrics=self._metrics,
                recorder=recorder,
                ready=outbound.uncrowded,
            )
            writer = group.create_task(outbound.run(self._transport), name="writer")
            reader = group.create_task(self._read(intake), name="reader")
            ingress = group.create_task(shell.ingress.run(intake), name="ingress")
            try:
                shell.driver.handle(self._setup.opened())
                await shell.driver.run()
            finally:
                reader.cancel()
                ingress.cancel()
                shell.close()
            # Whatever the machine has said last still goes out to a client that reads.
            outbound.put_close(*self._ending)
            await asyncio.wait({writer}, timeout=_CLOSE_GRACE_S)
            writer.cancel()

    async def _read(self, intake: Intake) -> None:
        await read_messages(self._transport, intake)
        self._on_lost(CLOSE_NORMAL, "")

    def _on_room(self) -> None:
        if self._shell is not None:
            self._shell.driver.wake()

    def _on_lost(self, code: int, reason: str) -> None:
        self._ending = (code, reason)
        if self._shell is not None:
            self._shell.driver.lose_client()

    async def _say_why(self, code: str, message: str) -> None:
        """One error event past the queue: the session that would have sent it is gone."""
        notice = ErrorRaised("server_error", code, message)
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await self._transport.send(self._encoder.encode(notice))
        except (TimeoutError, TransportClosed, OSError):
            log.info("%s: the client had gone before it could be told of %s", self.label, code)

    async def _close_transport(self) -> None:
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await self._transport.close(*self._ending)
        except TimeoutError:
            log.info("%s: the closing handshake was not answered", self.label)
