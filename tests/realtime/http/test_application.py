"""The wiring: how a configuration becomes a session, and a start that succeeds, waits or fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from pipelines.fakes.cascade import FakeCascade
from pipelines.ports import Capacity, Progress, StageStats
from pipelines.types import StageError
from realtime.app import App, create_app
from realtime.http.readiness import Phase
from realtime.runtime.refusals import ServerFull, StageUnavailable
from realtime.runtime.stage_health import StageHealth
from realtime.session.settings import (
    Eagerness,
    SemanticVad,
    ServerVad,
    SessionSettings,
    SessionType,
    TurnDetection,
)
from realtime.session_defaults import session_settings
from realtime.settings import SessionDefaults, Settings
from realtime.stages import create_cascade
from realtime.transports.handshake import Admission
from tests.realtime.runtime.stand_ins import PipeTransport


class SlowCascade(FakeCascade):
    """Loads when it is let, and fails if it is told to."""

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__()
        self.may_load = asyncio.Event()
        self.is_closed = False
        self._failure = failure

    async def start(self, progress: Progress) -> None:
        progress("whisper: loading")
        await self.may_load.wait()
        if self._failure is not None:
            raise self._failure
        await super().start(progress)

    async def close(self) -> None:
        self.is_closed = True
        await super().close()


async def health(app: App) -> tuple[int, dict[str, Any]]:
    transport = httpx.ASGITransport(app.asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.get("/health")
        return answer.status_code, answer.json()


def live(body: Callable[[App, SlowCascade, asyncio.Event], Any], failure: Exception | None = None):
    async def run() -> None:
        cascade, settled = SlowCascade(failure), asyncio.Event()
        app = create_app(Settings(), cascade=cascade, on_ready=settled.set)
        app.on_failure(settled.set)
        async with asyncio.timeout(10), app.asgi.router.lifespan_context(app.asgi):
            await asyncio.sleep(0)
            await body(app, cascade, settled)
        assert cascade.is_closed

    asyncio.run(run())


def test_the_server_answers_while_its_models_load() -> None:
    async def body(app: App, cascade: SlowCascade, settled: asyncio.Event) -> None:
        status, body = await health(app)
        assert status == 503
        assert (body["status"], body["loading"]) == ("loading", "whisper: loading")
        assert "whisper: loading" in (app.refusal() or "")
        cascade.may_load.set()
        await settled.wait()
        status, body = await health(app)
        tasks, lag_ms, load = body.pop("tasks"), body.pop("loop_lag_ms"), body.pop("load")
        assert (status, body) == (
            200,
            {
                "status": "ready",
                "sessions": 0,
                "parked": 0,
                "requests": 0,
                "audio_requests": 0,
                "stages": 0,
            },
        )
        with app.visits.enter():
            assert (await health(app))[1]["audio_requests"] == 1
        assert tasks > 0 and set(lag_ms) == {"p50", "p99", "max"}
        idle = {"active": 0, "aborts": 0, "last_abort_ms": 0.0, "worst_abort_ms": 0.0}
        assert load == dict.fromkeys(
            ("fake-speaker", "fake-recogniser", "fake-writer", "speech", "reply"), idle
        )
        assert app.refusal() is None
        await app.drain()
        assert (await health(app))[0] == 503
        assert app.refusal() == "The server is shutting down."

    live(body)


def test_a_failed_start_says_why() -> None:
    async def body(app: App, cascade: SlowCascade, settled: asyncio.Event) -> None:
        cascade.may_load.set()
        await settled.wait()
        assert app.failure == "no such model: fetch it"
        assert app.readiness.phase is Phase.FAILED
        assert "no such model" in (app.refusal() or "")

    live(body, StageError("model_missing", "no such model: fetch it"))


def test_a_start_that_fails_in_an_unforeseen_way_ends_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body(app: App, cascade: SlowCascade, settled: asyncio.Event) -> None:
        cascade.may_load.set()
        await settled.wait()
        assert "ZeroDivisionError('a fault')" in (app.failure or "")
        assert app.readiness.phase is Phase.FAILED

    live(body, ZeroDivisionError("a fault"))
    assert "ZeroDivisionError" in caplog.text


def test_a_server_can_stop_before_it_was_ready() -> None:
    async def body(app: App, _cascade: SlowCascade, _settled: asyncio.Event) -> None:
        await app.drain()

    live(body)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, SemanticVad()),
        (
            {"turn_detection": {"type": "semantic_vad", "eagerness": "low"}},
            SemanticVad(eagerness=Eagerness.LOW),
        ),
        (
            {"turn_detection": {"type": "server_vad", "silence_duration_ms": 300}},
            ServerVad(silence_duration_ms=300),
        ),
        ({"turn_detection": None}, None),
    ],
)
def test_configured_turn_detection_reaches_the_session(
    given: dict[str, Any], expected: TurnDetection | None
) -> None:
    defaults = SessionDefaults.model_validate(given)
    made = session_settings(defaults, SessionType.REALTIME, model="m", voice="v")
    assert made == SessionSettings(
        model="m", voice="v", instructions=defaults.instructions, turn_detection=expected
    )


def test_scripted_stages_make_a_cascade_that_starts_and_ends() -> None:
    choice = {"kind": "scripted"}
    roles = ("detector", "judge", "recogniser", "writer", "speaker")
    settings = Settings.model_validate({"stages": dict.fromkeys(roles, choice)})

    async def run() -> None:
        cascade = create_cascade(settings)
        told: list[str] = []
        await cascade.start(told.append)
        assert cascade.model == "scripted"
        assert cascade.voices == ("tone",)
        assert told
        await cascade.close()
        assert cascade.active == 0

    asyncio.run(run())


def test_a_request_to_hurry_cuts_the_closing_of_stages_short() -> None:
    class Closing(SlowCascade):
        def __init__(self) -> None:
            super().__init__()
            self.begun, self.killed = asyncio.Event(), asyncio.Event()

        async def close(self) -> None:
            self.begun.set()
            await self.killed.wait()
            await super().close()

        def kill(self) -> None:
            self.killed.set()

    async def run() -> None:
        cascade, ready = Closing(), asyncio.Event()
        cascade.may_load.set()
        app = create_app(Settings(), cascade=cascade, on_ready=ready.set)

        async def interrupt() -> None:
            await cascade.begun.wait()
            app.hurry()

        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            async with app.asgi.router.lifespan_context(app.asgi):
                await ready.wait()
                app.hurry()  # of conversations: there is nothing to close yet
                assert not cascade.killed.is_set()
                group.create_task(interrupt())
        assert cascade.is_closed

    asyncio.run(run())


class Faltering(FakeCascade):
    """Its voice is in the state that a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.voice = StageStats("tts", 0, state="serving")

    @property
    def stats(self) -> tuple[StageStats, ...]:
        return (StageStats("asr", 0), self.voice)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (
            "restarting",
            "The tts stage of this server is being restarted after a failure. Try again in a "
            "moment.",
        ),
        (
            "out_of_service",
            "The tts stage of this server is out of service. Its log has the cause.",
        ),
    ],
)
def test_a_server_that_lost_a_stage_takes_nobody_until_it_is_back(state: str, told: str) -> None:
    lost = "The process of the tts stage reports ModelMissing: there is no /models/voice."

    async def run() -> None:
        cascade = Faltering()
        app = create_app(Settings(), cascade=cascade)
        app.readiness.move(Phase.READY)
        app.registry.check_room()
        assert (await health(app))[0] == 200
        cascade.voice = StageStats("tts", 0, state=state, failure=lost)
        status, body = await health(app)
        assert (status, body["status"], body["failure"]) == (503, "failed", lost)
        with pytest.raises(StageUnavailable) as refused:
            app.registry.check_room()
        assert str(refused.value) == told
        assert app.refusal() is None, "whoever has a session can come back to it"
        cascade.voice = StageStats("tts", 0, state="serving")
        app.registry.check_room()
        assert (await health(app))[0] == 200

    asyncio.run(run())


def test_a_voice_that_is_out_of_service_is_not_called_slow() -> None:
    cascade = Faltering()
    health = StageHealth(cascade)
    assert health.listeners() == {}
    cascade.voice = StageStats("tts", 0, capacity=Capacity(0.5, 0.0, 1.0))
    assert health.listeners() == {"tts": 0.5}
    cascade.voice = StageStats("tts", 0, capacity=Capacity(0.0, 0.0, 0.0), failure="gone")
    assert health.listeners() == {}


def test_whoever_has_spent_a_quota_is_told_of_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        app = create_app(
            Settings.model_validate({"limits": {"sessions_per_key": 1}}), cascade=FakeCascade()
        )
        admission = Admission(None, SessionType.REALTIME, None, wants_beta=False, key=3)
        with app._quota.hold(3), pytest.raises(ServerFull, match="sessions of this key"):
            await app.converse(PipeTransport(), admission)

    asyncio.run(run())
    (told,) = caplog.messages
    assert told.startswith("a session is refused: too_many_sessions: All 1 sessions of this key")
