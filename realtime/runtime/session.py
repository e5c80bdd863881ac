"""One session from its first event to the last task: everything it owns lives in one task group."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.ports import Cascade, Detector
from pipelines.types import StageError
from realtime.observe.metrics import Count, Metrics
from realtime.protocol.encode import Encoder
from realtime.runtime.clock import Clock, LoopClock
from realtime.runtime.conversation import Conversation
from realtime.runtime.driver import Driver
from realtime.runtime.ears import Ears
from realtime.runtime.egress import DEFAULT_LEAD_MS, Egress
from realtime.runtime.hearing import Hearing
from realtime.runtime.ingress import Ingress, Intake, read_messages
from realtime.runtime.item_audio import DEFAULT_LIMIT_BYTES, ItemAudio
from realtime.runtime.outbound import Outbound
from realtime.runtime.outlet import Outlet, WireOutlet
from realtime.runtime.performer import Performer
from realtime.runtime.recorder import FileRecorder
from realtime.runtime.transport import Transport
from realtime.runtime.work import Works
from realtime.session.events import Opened, ShutDown
from realtime.session.machine import Machine
from realtime.session.notices import ErrorRaised
from realtime.session.policy import SAMPLES_PER_MS
from realtime.session.settings import SessionSettings

log = logging.getLogger(__name__)

_CLOSE_GRACE_S = 5.0  # for the last events to reach a client that still reads
_AHEAD_SAMPLES = 500 * SAMPLES_PER_MS  # heard at most beyond a question that the judge still owes
CLOSE_NORMAL = 1000
CLOSE_GONE = 1006
CLOSE_CRASHED = 1011


@dataclass(frozen=True, slots=True)
class SessionSetup:
    """What one session starts with.

    seed: makes every id. label: names the session in the log. lead_ms: how far audio is sent ahead
    of its playback, None for as fast as it is made. record_path: where to record the session.
    """

    settings: SessionSettings
    seed: int
    expires_at_s: int
    label: str = "session"
    profile: str = "browser"
    drafts: bool = True
    lead_ms: float | None = DEFAULT_LEAD_MS
    item_audio_bytes: int = DEFAULT_LIMIT_BYTES
    record_path: Path | None = None

    def opened(self) -> Opened:
        return Opened(self.seed, self.settings, self.profile, self.drafts, self.expires_at_s)
