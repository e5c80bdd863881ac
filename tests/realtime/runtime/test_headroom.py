"""Admission by what the voice can deliver."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

import pytest

from pipelines.ports import Capacity, StageStats
from realtime.observe.metrics import Count, Metrics
from realtime.runtime.headroom import NEW_S, SHARE, Headroom
from realtime.runtime.load import show_load
from realtime.runtime.refusals import ServerFull, StageUnavailable
from realtime.runtime.registry import Registry
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.session.settings import SessionSettings
from tests.realtime.runtime.stand_ins import PipeTransport, ScriptedCascade


def capacity(streams: float, delivers: float) -> Capacity:
    return Capacity(streams, delivers, could_deliver=2 * streams)


def test_where_nothing_was_measured_nobody_is_refused() -> None:
    headroom = Headroom()
    assert all(headroom.has_room(None, sessions, sessions) for sessions in (0, 1, 1000))


def test_an_empty_server_takes_somebody_however_slow_its_voice_is() -> None:
    headroom = Headroom()
    assert headroom.has_room(capacity(0.1, 0.0), 0, 0)
    assert not headroom.has_room(capacity(0.1, 0.0), 1, 0)


def test_as_many_as_can_be_spoken_to_at_once_are_never_refused() -> None:
    headroom = Headroom()
    assert headroom.has_room(capacity(2, 1.0), sessions=1, new=1)
    assert not headroom.has_room(capacity(1.9, 1.0), sessions=1, new=1)
    assert not headroom.has_room(capacity(2, 1.0), sessions=2, new=1)


def test_sessions_that_listen_do_not_count() -> None:
    assert Headroom().has_room(capacity(10, 6.0), sessions=200, new=0)
    assert not Headroom().has_room(capacity(10, 6.5), sessions=12, new=0)


def test_sessions_that_are_new_count_with_a_share() -> None:
    """Of so many that come at once, before one is heard, hardly ever more than ten speak."""
    headroom = Headroom()
    admitted = 0
    while headroom.has_room(capacity(10, 0.0), admitted, admitted):
        admitted += 1
    assert 16 <= admitted <= 20
    assert more_than(10, admitted) < 0.05 < more_than(10, admitted + 4)


@pytest.mark.parametrize("streams", [2, 4, 16, 64])
def test_who_speaks_finds_a_slot_in_nineteen_of_twenty_moments(streams: int) -> None:
    sessions = 1
    while Headroom().has_room(capacity(streams, sessions * SHARE), sessions, 0):
        sessions += 1
    assert more_than(streams, sessions) < 0.06
    assert more_than(streams, sessions + max(2, sessions // 8)) > 0.05, "no slots lie idle"


def more_than(streams: int, sessions: int) -> float:
    """The probability that more of the sessions speak at once."""
    return sum(
        math.comb(sessions, speak) * SHARE**speak * (1 - SHARE) ** (sessions - speak)
        for speak in range(streams + 1, sessions + 1)
    )


def test_after_a_refusal_there_must_be_clear_room() -> None:
    headroom = Headroom()
    room = [
        headroom.has_room(capacity(10, delivers), 20, 0)
        for delivers in (6.0, 6.4, 6.0, 5.5, 5.1, 6.0)
    ]
    assert room == [True, False, False, False, True, True]


class House:
    """A registry whose capacity and clock a test sets, with sessions that wait for their end."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.now_s = 1000.0
        self.capacity: Capacity | None = None
        self.metrics = Metrics()
        self.failure: str | None = None
        self.registry = Registry(
            100,
            self.metrics,
            lambda: self.capacity,
            now_s=lambda: self.now_s,
            failure=lambda: self.failure,
        )
        self._group = group
        self._sockets: list[PipeTransport] = []

    async def admit(self) -> None:
        """One more session. Raises ServerFull."""
        self.registry.check_room()
        transport = PipeTransport()
        self._sockets.append(transport)
        setup = SessionSetup(SessionSettings(), seed=len(self._sockets))
        session = SessionRuntime(transport, ScriptedCascade(), setup)
        self._group.create_task(self.registry.host(session))
        await transport.until("session.created")

    async def leave(self) -> None:
        for transport in self._sockets:
            transport.client_leaves()


def housed(script: Callable[[House], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            house = House(group)
            try:
                await script(house)
            finally:
                await house.leave()
        assert house.registry.count == 0

    asyncio.run(main())


def test_the_server_refuses_whom_the_voice_cannot_serve() -> None:
    async def script(house: House) -> None:
        await house.admit()
        house.capacity = capacity(1.9, 0.0)
        await house.admit()
        with pytest.raises(ServerFull, match=r"voice of this server.*about 2\."):
            await house.admit()
        assert house.metrics.counts[Count.SESSIONS_REFUSED] == 1
        assert house.registry.count == 2
        house.now_s += NEW_S + 1
        await house.admit()
        house.capacity = capacity(0.42, 0.3)
        with pytest.raises(ServerFull, match=r"about 0\.4\."):
            await house.admit()
        house.capacity = None
        await house.admit()

    housed(script)


def test_who_comes_to_a_server_that_lost_a_stage_is_told_which() -> None:
    async def script(house: House) -> None:
        house.capacity = capacity(0, 0)
        house.failure = "The tts stage of this server is out of service."
        with pytest.raises(StageUnavailable, match="^The tts stage") as refused:
            await house.admit()
        assert refused.value.code == "stage_unavailable"
        assert house.metrics.counts[Count.SESSIONS_REFUSED] == 1

    housed(script)


def test_health_shows_what_a_stage_knows() -> None:
    stats = (
        StageStats("tts", 3, queued=1, slots=2, capacity=capacity(1.23456, 0.5), aborts=2),
        StageStats("asr", 0),
    )
    zeros = {"last_abort_ms": 0.0, "worst_abort_ms": 0.0}
    assert show_load(stats) == {
        "load": {
            "tts": {
                "active": 3,
                "queued": 1,
                "slots": 2,
                "aborts": 2,
                **zeros,
                "capacity": {"streams": 1.235, "delivers": 0.5, "could_deliver": 2.469},
            },
            "asr": {"active": 0, "aborts": 0, **zeros},
        }
    }
    assert show_load(()) == {}
