"""The wiring: how a configuration becomes a session, and a start that succeeds, waits or fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from pipelines.fakes.cascade import FakeCascade
from pipelines.ports import Progress, StageStats
from pipelines.types import StageError
from realtime.app import App, create_app
from realtime.http.readiness import Phase
from realtime.runtime.registry import ServerFull
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
            {"status": "ready", "sessions": 0, "parked": 0, "requests": 0, "stages": 0},
        )
        assert tasks > 0 and set(lag_ms) == {"p50", "p99", "max"}
        idle = {"active": 0, "aborts": 0, "last_abort_ms": 0.0, "worst_abort_ms": 0.0}
        assert load == dict.fromkeys(
            ("fake-speaker", "fake-recogniser", "fake-writer", "reply"), idle
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


def test_a_server_that_lost_a_stage_takes_nobody() -> None:
    lost = "The process of the tts stage was ended by SIGKILL."

    class Lost(FakeCascade):
        @property
        def stats(self) -> tuple[StageStats, ...]:
            return (StageStats("asr", 0), StageStats("tts", 0, failure=lost))

    async def run() -> None:
        app = create_app(Settings(), cascade=Lost())
        app.readiness.move(Phase.READY)
        assert app.refusal() == lost
        status, body = await health(app)
        assert (status, body["status"], body["failure"]) == (503, "failed", lost)
        with pytest.raises(ServerFull, match="^The process of the tts"):
            app.registry.check_room()

    asyncio.run(run())
