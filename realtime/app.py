"""The wiring: a configuration becomes a cascade and a web application. No logic here."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from pipelines.ports import Cascade, Killable, Progress
from pipelines.types import StageError
from pipelines.weights import WeightsError
from realtime.access.gate import Gate
from realtime.access.keyring import KeyRing
from realtime.access.quota import QuotaSpent, SessionQuota
from realtime.http.answers import CODE_IN_SCOPE
from realtime.http.audio import create_audio_routes
from realtime.http.client_secrets import create_client_secret_route
from realtime.http.elsewhere import answer_stray, create_elsewhere_routes
from realtime.http.health import create_health_routes
from realtime.http.metrics import create_metrics_route
from realtime.http.models import create_model_routes
from realtime.http.pages import Pages
from realtime.http.readiness import Phase, Readiness
from realtime.http.reception import Reception
from realtime.http.references.fetching import ReferenceRules
from realtime.http.visits import Visits
from realtime.observe.loop_lag import RecentLag, watch_loop_lag
from realtime.observe.metrics import Metrics
from realtime.observe.prometheus import CONTENT_TYPE
from realtime.observe.slow_voice import watch_voices
from realtime.observe.traffic import Traffic
from realtime.runtime.pacing import Rates
from realtime.runtime.parking import Parking
from realtime.runtime.refusals import ServerFull
from realtime.runtime.registry import Registry
from realtime.runtime.server_figures import ServerFigures
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.runtime.stage_health import StageHealth
from realtime.runtime.transport import Transport
from realtime.runtime.voice_lookup import VoiceLookup
from realtime.runtime.watched_cascade import WatchedCascade
from realtime.session.identifiers import Identifiers
from realtime.session.settings import SessionSettings, SessionType
from realtime.session_defaults import session_bounds, session_settings
from realtime.settings import Settings
from realtime.stages import create_cascade
from realtime.transports.endpoint import create_realtime_route
from realtime.transports.handshake import CONFIGURED, Admission, Door
from realtime.voices.shelf import VoiceShelf

log = logging.getLogger(__name__)

WEB_FOLDER = Path(__file__).resolve().parents[1] / "web"
SEED_BITS = 63  # of a session's ids: two sessions never share one
S_PER_MINUTE = 60


class App:
    """One server. `asgi` is the application; the rest is for whoever runs it."""

    def __init__(
        self,
        settings: Settings,
        cascade: Cascade,
        on_progress: Progress,
        on_ready: Callable[[], None],
    ) -> None:
        self.failure: str | None = None
        self.is_loading = False
        self._is_closing = False
        self.now_s: Callable[[], float] = time.time  # unix time, of what expires
        self.metrics = Metrics()
        self._health = StageHealth(cascade)
        self.registry = Registry(
            settings.server.max_sessions,
            self.metrics,
            lambda: self._cascade.capacity,
            failure=self._health.apology,
        )
        self._quota = SessionQuota(settings.limits.sessions_per_key)
        self._bounds = session_bounds(settings.limits)
        self.readiness = Readiness()
        self.visits = Visits()
        self._lag = RecentLag()
        self._figures = ServerFigures(
            self.registry, cascade, self.metrics, self._lag, lambda: self.visits.count
        )
        self._settings = settings
        self._cascade = cascade
        self._watched = WatchedCascade(cascade, self.metrics)  # for whoever makes requests
        self._shelf = VoiceShelf(settings.speech.voices_folder)
        self._on_progress = on_progress
        self._on_ready = on_ready
        self._on_failure: Callable[[], None] = lambda: None
        self.asgi = self._create_asgi()

    def on_failure(self, call: Callable[[], None]) -> None:
        """What to do when the models cannot be loaded; `failure` then says why."""
        self._on_failure = call

    # ---- what it answers -------------------------------------------------------------------------

    def _create_asgi(self) -> FastAPI:
        server = self._settings.server
        app = FastAPI(
            title="Parley",
            lifespan=self._live,
            docs_url=None,
            redoc_url=None,
            # Whoever is redirected sends keys and recordings to wherever the Host header names.
            redirect_slashes=False,
        )
        app.add_exception_handler(HTTPException, answer_stray)
        app.add_middleware(Traffic, metrics=self.metrics, code_in_scope=CODE_IN_SCOPE)
        gate = Gate(
            KeyRing(server.keys),
            server.origins,
            loopback=server.is_loopback,
            now_s=lambda: self.now_s(),
        )
        app.include_router(
            create_health_routes(self.readiness, self._figures.live, gate, self._health.failure)
        )
        app.include_router(create_metrics_route(gate, self._exposition, CONTENT_TYPE))
        app.include_router(create_model_routes(gate, lambda: self._cascade.model))
        app.include_router(
            create_client_secret_route(gate, self._bounds, self._defaults, make_session_id)
        )
        speech = self._settings.speech
        app.include_router(
            create_audio_routes(
                Reception(gate, self.readiness, self._watched, self._health.apology, self.visits),
                self._shelf,
                ReferenceRules(
                    speech.remote_references, speech.reference_folders, speech.reference_ports
                ),
            )
        )
        app.include_router(create_elsewhere_routes())
        app.include_router(create_realtime_route(Door(gate), self))
        if WEB_FOLDER.is_dir():
            # Behind all routes, so that a wrong method on one of them is told as that.
            app.router.default = Pages(WEB_FOLDER)
        return app

    def _exposition(self) -> str:
        is_ready = self.readiness.is_ready and self._health.failure() is None
        return self._figures.exposition(is_ready=is_ready)

    # ---- its life --------------------------------------------------------------------------------

    @asynccontextmanager
    async def _live(self, _app: FastAPI) -> AsyncIterator[None]:
        """The server answers while its models load; `/health` tells how far it is."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._load(), name="loading"),
                group.create_task(watch_loop_lag(self.metrics, self._lag), name="loop lag"),
                group.create_task(watch_voices(self._health.listeners), name="slow voices"),
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
        self._is_closing = True
        await self._cascade.close()
        await asyncio.to_thread(self._shelf.close)

    async def _load(self) -> None:
        self.is_loading = True
        try:
            await self._cascade.start(self._tell)
        except (WeightsError, StageError) as error:
            self._fail(str(error))
        except Exception as error:
            log.exception("loading failed unexpectedly")
            self._fail(f"the models could not be loaded: {error!r}; the trace is above")
        else:
            self.readiness.move(Phase.READY)
            self._on_ready()
        self.is_loading = False  # whoever is cancelled leaves threads behind that still read

    def _fail(self, why: str) -> None:
        """A server that can never serve must end, and not wait for ever with its port taken."""
        self.failure = why
        self.readiness.move(Phase.FAILED, why)
        self._on_failure()

    def _tell(self, line: str) -> None:
        self.readiness.move(Phase.LOADING, line)
        self._on_progress(line)

    async def drain(self) -> None:
        """Let people finish what is being said, take nobody new. Bounded."""
        self.readiness.move(Phase.STOPPING)
        timeout_s = self._settings.server.drain_ms / 1000
        async with asyncio.TaskGroup() as group:
            group.create_task(self.registry.drain(timeout_s), name="drain of conversations")
            group.create_task(self.visits.drain(timeout_s), name="drain of audio requests")

    def hurry(self) -> None:
        """End what is waited for: all that `drain` lets finish, then the stages' own tidying up."""
        self.registry.hurry()
        self.visits.hurry()
        if self._is_closing and isinstance(self._cascade, Killable):
            self._cascade.kill()

    # ---- conversations ---------------------------------------------------------------------------

    def refusal(self) -> str | None:
        """Of a server that is ready every session learns by itself whether it can begin, and one
        that goes on can be resumed."""
        return None if self.readiness.is_ready else self.readiness.refusal()

    @property
    def parking(self) -> Parking:
        return self.registry.parking

    async def converse(self, transport: Transport, admission: Admission) -> None:
        setup = self._set_up(admission)
        session = SessionRuntime(
            transport,
            self._watched,
            setup,
            metrics=self.metrics,
            parking=self.parking,
            wants_details=admission.wants_details,
        )
        try:
            with self._quota.hold(admission.key):
                await self.registry.host(session)
        except QuotaSpent as spent:
            raise self.registry.refuse(ServerFull(str(spent))) from spent

    def _set_up(self, admission: Admission) -> SessionSetup:
        seed = secrets.randbits(SEED_BITS)
        label = f"session {seed:016x}"
        folder = self._settings.server.record_dir
        name = f"{datetime.now():%Y%m%d-%H%M%S}-{seed:016x}.jsonl"
        limits = self._settings.limits
        lasts_s = limits.session_minutes * S_PER_MINUTE
        defaults = self._defaults(admission.session_type, admission.model)
        return SessionSetup(
            settings=defaults.patched(admission.patch),
            seed=seed,
            expires_at_s=int(self.now_s()) + lasts_s,
            label=label,
            profile=self._settings.session.profile,
            drafts=self._settings.drafts,
            lead_ms=self._lead_ms(admission),
            record_path=None if folder is None else folder / name,
            lasts_ms=lasts_s * 1000,
            resume_ms=self._settings.server.resume_ms if admission.is_resumable else 0,
            bounds=self._bounds,
            rates=Rates(limits.events_per_second, limits.appends_per_second),
            voices=VoiceLookup(self._cascade, self._shelf.find),
        )

    def _lead_ms(self, admission: Admission) -> float | None:
        wanted_ms = admission.lead_ms
        return self._settings.server.lead_ms if wanted_ms == CONFIGURED else wanted_ms

    def _defaults(self, session_type: SessionType, model: str | None) -> SessionSettings:
        return session_settings(
            self._settings.session,
            session_type,
            model=model or self._cascade.model,
            voice=self._settings.session.voice or self._cascade.voices[0],
        )


def create_app(
    settings: Settings,
    *,
    cascade: Cascade | None = None,
    on_progress: Progress = lambda _line: None,
    on_ready: Callable[[], None] = lambda: None,
) -> App:
    """A server of this configuration; `cascade` stands in for the configured stages."""
    return App(settings, cascade or create_cascade(settings), on_progress, on_ready)


def make_session_id() -> str:
    """The id of a session that has not begun."""
    return Identifiers(secrets.randbits(SEED_BITS)).make("sess")
