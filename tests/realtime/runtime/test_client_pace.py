"""Clients in a hurry, and sessions whose time is over, on a clock that waits for nobody."""

from __future__ import annotations

import asyncio

import pytest

from pipelines.fakes.virtual_time import run_virtual
from realtime.runtime.pacing import Rates
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.session.settings import SessionSettings
from tests.realtime.runtime.stand_ins import (
    PipeTransport,
    ScriptedCascade,
    append,
    pcm,
    silence,
)

RATES = Rates(events_per_s=100, appends_per_s=1000)
MUTE = SessionSettings(turn_detection=None)


def test_a_flood_of_events_is_answered_whole_and_in_order_at_its_rate() -> None:
    async def main() -> None:
        transport, loop = PipeTransport(), asyncio.get_running_loop()
        session = SessionRuntime(
            transport, ScriptedCascade(), SessionSetup(MUTE, seed=1, rates=RATES)
        )
        running = asyncio.create_task(session.run())
        await transport.until("session.created")
        begun_s = loop.time()
        ids = [f"e_{number}" for number in range(1200)]
        transport.client_sends(
            *({"type": "response.cancel", "event_id": event_id} for event_id in ids)
        )
        await transport.until("error", len(ids))
        # 200 at once, 100 a second thereafter.
        assert loop.time() - begun_s == pytest.approx(10, abs=0.5)
        assert [event["error"]["event_id"] for event in transport.of("error")] == ids
        assert {event["error"]["code"] for event in transport.of("error")} == {
            "response_cancel_not_active"
        }
        transport.client_leaves()
        await running

    run_virtual(main(), limit_s=100)


def test_a_flood_stops_the_reading_and_keeps_no_memory() -> None:
    async def main() -> None:
        transport = PipeTransport()
        session = SessionRuntime(
            transport, ScriptedCascade(), SessionSetup(MUTE, seed=1, rates=RATES)
        )
        running = asyncio.create_task(session.run())
        transport.client_sends(*({"type": "response.cancel"} for _ in range(5000)))
        await asyncio.sleep(1)
        assert transport.unread > 4500
        transport.client_leaves()
        running.cancel()
        await asyncio.wait({running})

    run_virtual(main(), limit_s=100)


def test_a_recording_is_heard_as_fast_as_it_comes() -> None:
    async def main() -> None:
        transport, loop = PipeTransport(), asyncio.get_running_loop()
        session = SessionRuntime(
            transport, ScriptedCascade(), SessionSetup(MUTE, seed=1, rates=RATES)
        )
        running = asyncio.create_task(session.run())
        await transport.until("session.created")
        begun_s = loop.time()
        piece = append(pcm(silence(20)))
        transport.client_sends(*(piece for _ in range(1500)))  # 30 s
        transport.client_sends({"type": "input_audio_buffer.commit"})
        await transport.until("input_audio_buffer.committed")
        assert loop.time() - begun_s < 1
        assert not transport.of("error")
        transport.client_leaves()
        await running

    run_virtual(main(), limit_s=100)


def test_a_session_ends_when_its_time_is_over() -> None:
    async def main() -> None:
        transport, loop = PipeTransport(), asyncio.get_running_loop()
        cascade = ScriptedCascade()
        setup = SessionSetup(MUTE, seed=1, expires_at_s=1_900_000_000, lasts_ms=3_600_000)
        session = SessionRuntime(transport, cascade, setup)
        begun_s = loop.time()
        await session.run()
        assert loop.time() - begun_s == pytest.approx(3600, abs=0.1)
        why = "Your session hit the maximum duration of 60 minutes."
        assert transport.closed == (1001, why)
        assert transport.sent[0]["session"]["expires_at"] == 1_900_000_000
        error = transport.sent[-1]["error"]
        assert (error["code"], error["message"]) == ("session_expired", why)
        assert cascade.detectors[0].is_closed and session.open_requests == 0

    run_virtual(main(), limit_s=4000)
