"""What the log tells of sessions that are turned away."""

from __future__ import annotations

import asyncio

import pytest

from realtime.observe.metrics import Count, Metrics
from realtime.runtime.refusals import QUIET_S, RefusalLog, ServerFull
from realtime.runtime.registry import Registry


def test_a_crowd_at_the_door_is_a_line_with_a_count(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 1000.0
    log = RefusalLog(lambda: now_s)
    for _ in range(10):
        log.tell("too_many_sessions", "All 2 sessions are in use.")
    log.tell("stage_unavailable", "The tts stage is away.")
    now_s += QUIET_S
    log.tell("too_many_sessions", "All 2 sessions are in use.")
    now_s += QUIET_S
    log.tell("too_many_sessions", "All 2 sessions are in use.")
    assert caplog.messages == [
        "a session is refused: too_many_sessions: All 2 sessions are in use.",
        "a session is refused: stage_unavailable: The tts stage is away.",
        "a session is refused: too_many_sessions: All 2 sessions are in use. "
        "(and 9 more in the last 5 s)",
        "a session is refused: too_many_sessions: All 2 sessions are in use.",
    ]


def test_every_refusal_of_the_registry_is_counted_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        metrics = Metrics()
        registry = Registry(0, metrics)
        with pytest.raises(ServerFull, match="All 0 sessions"):
            registry.check_room()
        assert metrics.counts[Count.SESSIONS_REFUSED] == 1

    asyncio.run(main())
    (told,) = caplog.messages
    assert told.startswith("a session is refused: too_many_sessions: All 0 sessions")
