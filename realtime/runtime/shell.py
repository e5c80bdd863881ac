"""The parts of one session, put together: the same for a socket and for a simulation."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from pipelines.ports import Cascade, Detector
from pipelines.types import HEARING_RATE_HZ, StageError
from realtime.observe.metrics import Metrics
from realtime.runtime.clock import Clock
from realtime.runtime.conversation import Conversation, SessionView
from realtime.runtime.driver import Driver, Recorder
from realtime.runtime.ears import Ears
from realtime.runtime.egress import DEFAULT_LEAD_MS, Egress
from realtime.runtime.hearing import Hearing
from realtime.runtime.ingress import Ingress
from realtime.runtime.item_audio import DEFAULT_LIMIT_BYTES, ItemAudio
from realtime.runtime.outlet import Outlet
from realtime.runtime.pacing import Pacing, Rates
from realtime.runtime.performer import Performer
from realtime.runtime.voice_lookup import VoiceLookup
from realtime.runtime.work import Works
from realtime.session.bounds import Bounds
from realtime.session.events import Event, Opened
from realtime.session.notices import ErrorRaised, Pong
from realtime.session.settings import SessionSettings

# Half a second beyond a question that the judge still owes: audio that comes faster than it is
# spoken then gives the same turns as audio that does not.
_AHEAD_SAMPLES = HEARING_RATE_HZ // 2


@dataclass(frozen=True, slots=True)
class SessionSetup:
    """What one session starts with.

    seed: makes every id. expires_at_s: unix time, shown to the client. label: the session's name
    in the log. lead_ms: how far audio is sent ahead of its playback, None for as fast as it is
    made. lasts_ms: how long the session may last; it ends at expires_at_s then. resume_ms: how long
    it waits for a client that was lost; 0: it ends with its socket. record_path: the file in which
    the session is recorded. voices: where uploaded ones are found; None: nowhere.
    """

    settings: SessionSettings
    seed: int
    expires_at_s: int = 0
    label: str = "session"
    profile: str = "browser"
    drafts: bool = True
    lead_ms: float | None = DEFAULT_LEAD_MS
    item_audio_bytes: int = DEFAULT_LIMIT_BYTES
    record_path: Path | None = None
    lasts_ms: float | None = None
    resume_ms: float = 0
    bounds: Bounds = Bounds()
    rates: Rates = Rates()
    voices: VoiceLookup | None = None

    def opened(self) -> Opened:
        return Opened(
            self.seed,
            self.settings,
            self.profile,
            self.drafts,
            self.expires_at_s,
            self.lead_ms,
            self.lasts_ms,
            self.bounds,
            self.resume_ms,
        )


class Shell:
    """Stage work lives in `group`."""

    def __init__(
        self,
        *,
        group: asyncio.TaskGroup,
        cascade: Cascade,
        detector: Detector,
        egress: Egress,
        outlet: Outlet,
        conversation: Conversation,
        clock: Clock,
        setup: SessionSetup,
        metrics: Metrics,
        recorder: Recorder | None,
    ) -> None:
        self._outlet = outlet
        self.hearing = Hearing()
        self.items = ItemAudio(setup.item_audio_bytes)
        self.works = Works(cascade, egress, metrics, group, self._deliver, setup.voices)
        self.performer = Performer(
            hearing=self.hearing,
            items=self.items,
            works=self.works,
            egress=egress,
            outlet=outlet,
            metrics=metrics,
            label=setup.label,
        )
        self.driver = Driver(
            conversation=conversation,
            clock=clock,
            performer=self.performer,
            egress=egress,
            works=self.works,
            outlet=outlet,
            recorder=recorder,
        )
        self.ears = Ears(
            hearing=self.hearing,
            detector=detector,
            on_frame=self._hear,
            on_failure=self._report,
            before_frame=self._await_verdict,
            take_reset=self.performer.take_detector_reset,
            audio_format=setup.settings.input_format,
        )
        self.ingress = Ingress(
            ears=self.ears,
            hearing=self.hearing,
            items=self.items,
            deliver=self._deliver,
            view=self._view,
            pacing=Pacing(setup.rates, clock),
            answer=lambda name: outlet.tell(Pong(name)),
        )

    def close(self) -> None:
        """Abort all work and free all audio. The tasks end with their group."""
        self.works.close()
        self.ears.close()
        self.hearing.forget()
        self.items.clear()

    def _hear(self, event: Event) -> None:
        self._deliver(event)
        self.works.notice_audio()

    def _deliver(self, event: Event) -> None:
        self.driver.handle(event)

    def _view(self) -> SessionView:
        return self.performer.view

    def _report(self, error: StageError) -> None:
        self._outlet.tell(ErrorRaised("server_error", error.code, error.message))

    async def _await_verdict(self) -> None:
        while (asked := self.works.oldest_question) is not None:
            if self.hearing.position - asked < _AHEAD_SAMPLES:
                return
            self.works.changed.clear()
            await self.works.changed.wait()
