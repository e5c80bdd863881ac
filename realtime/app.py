"""The wiring: a configuration becomes stages, a cascade and a web application. No logic here."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from fastapi import FastAPI

from pipelines.cascade import CascadeOptions, VoiceCascade
from pipelines.courtesy import Courtesy
from pipelines.ports import (
    Cascade,
    DetectorStage,
    Judge,
    Progress,
    Recogniser,
    Speaker,
    Writer,
)
from pipelines.reply import ReplyTiming
from pipelines.runtime.cpu import CpuToken
from pipelines.types import StageError
from pipelines.weights import WeightsError
from realtime.http.pages import Pages
from realtime.http.readiness import Phase, Readiness
from realtime.http.routes import create_routes
from realtime.observe.loop_lag import RecentLag, watch_loop_lag
from realtime.observe.metrics import Metrics
from realtime.runtime.registry import Registry
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.runtime.transport import Transport
from realtime.session.settings import (
    Eagerness,
    SemanticVad,
    ServerVad,
    SessionSettings,
    SessionType,
    TurnDetection,
)
from realtime.settings import (
    Llama,
    OpenAIWriter,
    Piper,
    Scripted,
    SemanticVadDefault,
    SessionDefaults,
    Settings,
    Silero,
    SmartTurn,
    Whisper,
)
from realtime.transports.endpoint import create_realtime_route
from realtime.transports.handshake import Door

log = logging.getLogger(__name__)

WEB_FOLDER = Path(__file__).resolve().parents[1] / "web"
SEED_BITS = 63  # of a session's ids: two sessions never share one
EXPIRES_AFTER_S = 24 * 3600  # told to clients that ask; nothing ends a session that is in use


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
        self.metrics = Metrics()
        self.registry = Registry(settings.server.max_sessions, self.metrics)
        self.readiness = Readiness()
        self._lag = RecentLag()
        self._settings = settings
        self._cascade = cascade
        self._on_progress = on_progress
        self._on_ready = on_ready
        self._on_failure: Callable[[], None] = lambda: None
        self.asgi = self._create_asgi()

    def on_failure(self, call: Callable[[], None]) -> None:
        """What to do when the models cannot be loaded; `failure` then says why."""
        self._on_failure = call

    async def drain(self) -> None:
        """Let people finish what is being said, take nobody new. Bounded."""
        self.readiness.move(Phase.STOPPING)
        await self.registry.drain(self._settings.server.drain_ms / 1000)

    def refusal(self) -> str | None:
        return None if self.readiness.is_ready else self.readiness.refusal()

    def _live_now(self) -> dict[str, object]:
        """What an operator watches: after the last client has gone every count is back."""
        return {
            "sessions": self.registry.count,
            "requests": self.registry.open_requests,
            "stages": self._cascade.active,
            "tasks": len(asyncio.all_tasks()),
            "loop_lag_ms": self._lag.view(),
        }

    async def converse(
        self, transport: Transport, session_type: SessionType, model: str | None
    ) -> None:
        setup = self._set_up(session_type, model)
        session = SessionRuntime(transport, self._cascade, setup, metrics=self.metrics)
        await self.registry.host(session)

    def _set_up(self, session_type: SessionType, model: str | None) -> SessionSetup:
        seed = secrets.randbits(SEED_BITS)
        label = f"session {seed:016x}"
        folder = self._settings.server.record_dir
        name = f"{datetime.now():%Y%m%d-%H%M%S}-{seed:016x}.jsonl"
        return SessionSetup(
            settings=session_settings(
                self._settings.session,
                session_type,
                model=model or self._cascade.model,
                voice=self._settings.session.voice or self._cascade.voices[0],
            ),
            seed=seed,
            expires_at_s=int(time.time()) + EXPIRES_AFTER_S,
            label=label,
            profile=self._settings.session.profile,
            drafts=self._settings.drafts,
            lead_ms=self._settings.server.lead_ms,
            record_path=None if folder is None else folder / name,
        )

    def _create_asgi(self) -> FastAPI:
        server = self._settings.server
        app = FastAPI(title="Parley", lifespan=self._live, openapi_url=None)
        app.include_router(
            create_routes(
                self.readiness,
                model=lambda: self._cascade.model,
                live=self._live_now,
                keys=server.keys,
            )
        )
        door = Door(server.keys, server.origins, loopback=server.is_loopback)
        app.include_router(create_realtime_route(door, self))
        if WEB_FOLDER.is_dir():
            app.mount("/", Pages(WEB_FOLDER))
        return app

    @asynccontextmanager
    async def _live(self, _app: FastAPI) -> AsyncIterator[None]:
        """The server answers while its models load; `/health` tells how far it is."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._load(), name="loading"),
                group.create_task(watch_loop_lag(self.metrics, self._lag), name="loop lag"),
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
        await self._cascade.close()

    async def _load(self) -> None:
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

    def _fail(self, why: str) -> None:
        """A server that can never serve must end, and not wait for ever with its port taken."""
        self.failure = why
        self.readiness.move(Phase.FAILED, why)
        self._on_failure()

    def _tell(self, line: str) -> None:
        self.readiness.move(Phase.LOADING, line)
        self._on_progress(line)


def create_app(
    settings: Settings,
    *,
    cascade: Cascade | None = None,
    on_progress: Progress = lambda _line: None,
    on_ready: Callable[[], None] = lambda: None,
) -> App:
    """A server of this configuration; `cascade` stands in for the configured stages."""
    return App(settings, cascade or create_cascade(settings), on_progress, on_ready)


def session_settings(
    defaults: SessionDefaults, session_type: SessionType, *, model: str, voice: str
) -> SessionSettings:
    """What a session has until its client says otherwise."""
    return SessionSettings(
        type=session_type,
        model=model,
        instructions=defaults.instructions,
        voice=voice,
        turn_detection=_turn_detection(defaults),
    )


def _turn_detection(defaults: SessionDefaults) -> TurnDetection | None:
    chosen = defaults.turn_detection
    if chosen is None:
        return None
    if isinstance(chosen, SemanticVadDefault):
        values = chosen.model_dump(exclude={"type", "eagerness"})
        return SemanticVad(eagerness=Eagerness(chosen.eagerness), **values)
    return ServerVad(**chosen.model_dump(exclude={"type"}))


def create_cascade(settings: Settings) -> VoiceCascade:
    """The configured stages, not started yet. Those of this process share one token of CPU."""
    stages = settings.stages
    cpu = CpuToken()
    speaker, voices = _speaker(stages.speaker, cpu)
    writer, model = _writer(stages.writer, cpu, settings.session.instructions)
    courtesy = Courtesy(
        filler_after_ms=settings.filler_after_ms,
        fillers=settings.reply.fillers,
        apology=settings.reply.apology,
        empty=settings.reply.empty,
    )
    return VoiceCascade(
        _detector(stages.detector),
        _judge(stages.judge),
        _recogniser(stages.recogniser, cpu),
        writer,
        speaker,
        CascadeOptions(voices=voices, model=model, timing=ReplyTiming(courtesy=courtesy)),
    )


# Stages are imported when they are wanted: their packages are large.


def _detector(choice: Silero | Scripted) -> DetectorStage:
    if isinstance(choice, Scripted):
        from pipelines.fakes.hearing import FakeDetectorStage

        return FakeDetectorStage()
    from pipelines.stages.vad_silero import SileroDetector

    return SileroDetector(choice.path)


def _judge(choice: SmartTurn | Scripted) -> Judge:
    if isinstance(choice, Scripted):
        from pipelines.fakes.hearing import FakeJudge

        return FakeJudge()
    from pipelines.stages.turn_smart import SmartTurnJudge

    return SmartTurnJudge(choice.path)


def _recogniser(choice: Whisper | Scripted, cpu: CpuToken) -> Recogniser:
    if isinstance(choice, Scripted):
        from pipelines.fakes.hearing import FakeRecogniser

        return FakeRecogniser()
    from pipelines.stages.asr_whisper import WhisperRecogniser

    return WhisperRecogniser(
        choice.model, choice.path, cpu=cpu, threads=choice.threads, partials=choice.partials
    )


def _writer(
    choice: Llama | OpenAIWriter | Scripted, cpu: CpuToken, instructions: str
) -> tuple[Writer, str]:
    if isinstance(choice, Scripted):
        from pipelines.fakes.writer import FakeWriter

        return FakeWriter(), choice.kind
    if isinstance(choice, OpenAIWriter):
        from pipelines.stages import llm_openai

        key = choice.key or (os.environ.get(choice.key_env) if choice.key_env else None)
        options = llm_openai.OpenAIWriterOptions(
            base_url=choice.url,
            model=choice.model,
            api_key=key or None,
            extra_body={} if choice.temperature is None else {"temperature": choice.temperature},
            first_token_timeout_ms=choice.first_token_timeout_ms,
            token_timeout_ms=choice.token_timeout_ms,
        )
        return llm_openai.OpenAIWriter(options), choice.model
    from pipelines.stages.llm_llama import LlamaWriter

    llama = LlamaWriter(
        choice.model,
        choice.path,
        cpu=cpu,
        threads=choice.threads,
        context_tokens=choice.context_tokens,
        instructions=instructions,
    )
    return llama, choice.model


def _speaker(choice: Piper | Scripted, cpu: CpuToken) -> tuple[Speaker, tuple[str, ...]]:
    if isinstance(choice, Scripted):
        from pipelines.fakes.speaker import FakeSpeaker

        return FakeSpeaker(), ("tone",)
    from pipelines.stages.tts_piper import PiperSpeaker

    speaker = PiperSpeaker(choice.path, cpu=cpu, threads=choice.threads)
    return speaker, (choice.voice,)
