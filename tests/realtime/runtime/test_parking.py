"""Sessions without a client: how long they are kept, what they hold, and how they end."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace
from typing import Any

import pytest

from pipelines.fakes.virtual_time import run_virtual
from pipelines.types import Samples
from realtime.observe.metrics import Metrics
from realtime.runtime.parking import SessionOver
from realtime.runtime.refusals import ServerFull
from realtime.runtime.registry import Registry
from realtime.runtime.session import SessionRuntime
from realtime.session.effects import Effect
from realtime.session.events import Disconnected, Event, Reconnected
from tests.realtime.runtime.lost_clients import (
    RESUME_MS,
    SETUP,
    Counting,
    House,
    play,
    say,
    token_of,
)
from tests.realtime.runtime.stand_ins import (
    EnergyDetector,
    PipeTransport,
    ScriptedCascade,
    ScriptedMachine,
    append,
    pcm,
    tone,
)

# ---- who is parked -----------------------------------------------------------------------------


@pytest.mark.parametrize("code", [None, 1001, 1006, 1011, 4321])
def test_a_client_that_may_come_back_is_waited_for(code: int | None) -> None:
    async def script(house: House) -> None:
        client = await house.open()
        client.client_leaves(code)
        await house.parked()
        assert house.registry.count == house.registry.parked == 1
        back = await house.resume(token_of(client))
        assert back.closed is None and house.registry.parked == 0

    play(script, House(ScriptedCascade()))


def test_a_client_that_closes_with_1000_is_done() -> None:
    async def script(house: House) -> None:
        client = await house.open()
        client.client_leaves(1000)
        async with asyncio.timeout(1):
            await house.tasks[0]
        with pytest.raises(SessionOver):
            await house.resume(token_of(client))

    play(script, House(ScriptedCascade()))


@pytest.mark.parametrize("is_offered", [False, True])
def test_who_does_not_ask_ends_with_its_socket(is_offered: bool) -> None:
    """As does everybody where the configuration says 0."""

    async def main() -> None:
        transport, registry = PipeTransport(), Registry(1, Metrics())
        session = SessionRuntime(
            transport,
            ScriptedCascade(),
            replace(SETUP, resume_ms=0) if is_offered else SETUP,
            parking=registry.parking if is_offered else None,
        )
        hosted = asyncio.create_task(registry.host(session))
        greeting = await transport.until("session.created")
        assert "parley" not in greeting and len(registry.parking) == 0
        transport.client_leaves()
        async with asyncio.timeout(1):
            await hosted

    run_virtual(main(), limit_s=100)


# ---- how it ends -------------------------------------------------------------------------------


@pytest.mark.parametrize("moment_s", [0.1, 0.9, 1.6, 2.4])
def test_nobody_comes_back_and_everything_is_freed(moment_s: float) -> None:
    async def script(house: House) -> None:
        tasks = len(asyncio.all_tasks())
        client = await house.open()
        talking = asyncio.create_task(say(client))
        await asyncio.sleep(moment_s)
        talking.cancel()
        client.client_leaves()
        await house.parked()
        assert house.cascade.active == 0, "no stage works for nobody"
        await asyncio.sleep(RESUME_MS / 1000 - 1)
        assert house.registry.count == 1
        await asyncio.sleep(2)
        assert house.registry.count == house.registry.parked == 0
        assert len(asyncio.all_tasks()) == tasks
        with pytest.raises(SessionOver):
            await house.resume(token_of(client))

    play(script, House(Counting()))


def test_a_server_that_stops_ends_parked_sessions_at_once() -> None:
    async def script(house: House) -> None:
        for _ in range(3):
            client = await house.open()
            client.client_leaves()
        await house.parked(3)
        async with asyncio.timeout(1):
            await house.registry.drain(timeout_s=30)
        assert house.registry.count == 0

    play(script, House(ScriptedCascade()))


def test_a_server_that_stops_lets_a_client_that_came_back_hear_the_end() -> None:
    async def script(house: House) -> None:
        client = await house.open()
        client.client_leaves()
        await house.parked()
        client = await house.resume(token_of(client))
        client.client_sends({"type": "response.create"})
        await client.until("response.output_audio.delta")
        await house.registry.drain(timeout_s=30)
        assert client.of("response.done")[0]["response"]["status"] == "completed"
        assert client.closed == (1001, "The session has ended.")

    play(script, House(ScriptedCascade()))


def test_parked_sessions_count_and_a_flood_of_them_stays_within_the_limit() -> None:
    async def script(house: House) -> None:
        clients = list[PipeTransport]()
        for _ in range(50):
            try:
                house.registry.check_room()
            except ServerFull:
                continue
            clients.append(await house.open())
            clients[-1].client_leaves()
            await house.parked(len(clients))
        assert len(clients) == house.registry.count == len(house.registry.parking) == 4
        for _ in range(50):
            for place, client in enumerate(clients):
                clients[place] = await house.resume(token_of(client))
            assert house.registry.parked == 0 and house.registry.count == 4
            for client in clients:
                client.client_leaves()
            await house.parked(4)
        assert len(house.registry.parking) == 4
        await asyncio.sleep(RESUME_MS / 1000 + 1)
        assert house.registry.count == 0
        house.registry.check_room()

    play(script, House(ScriptedCascade()))


def test_a_refused_session_leaves_no_token() -> None:
    async def script(house: House) -> None:
        await house.open()
        with pytest.raises(ServerFull):
            await house.registry.host(
                SessionRuntime(
                    PipeTransport(), house.cascade, SETUP, parking=house.registry.parking
                )
            )
        assert len(house.registry.parking) == 1

    play(script, House(ScriptedCascade(), limit=1))


# ---- what goes wrong ---------------------------------------------------------------------------


def test_a_server_that_gives_up_a_client_parks_its_session() -> None:
    """The task that serves the client is cancelled, not the session."""

    async def script(house: House) -> None:
        client = await house.open()
        client = await house.resume(token_of(client))
        house.tasks[1].cancel()
        await asyncio.wait({house.tasks[1]})
        await house.parked()
        assert client.closed is not None
        del house.tasks[1]
        await house.resume(token_of(client))

    play(script, House(ScriptedCascade()))


def test_a_session_that_is_over_in_the_very_moment_says_so() -> None:
    async def script(house: House) -> None:
        client = await house.open()
        client.client_leaves()
        await house.parked()
        claim = house.registry.parking.claim(token_of(client))
        await asyncio.sleep(RESUME_MS / 1000 + 1)
        transport = PipeTransport()
        with pytest.raises(SessionOver):
            await claim.session.attach(transport)
        assert transport.sent == []

    play(script, House(ScriptedCascade()))


def test_a_crash_is_told_to_the_client_that_came_back() -> None:
    def react(event: Event) -> list[Effect]:
        if isinstance(event, Reconnected):
            raise ZeroDivisionError("a bug")
        return []

    async def main() -> None:
        registry, transport = Registry(1, Metrics()), PipeTransport()
        session = SessionRuntime(
            transport,
            ScriptedCascade(),
            SETUP,
            conversation=ScriptedMachine(react),
            parking=registry.parking,
        )
        hosted = asyncio.create_task(registry.host(session))
        await asyncio.sleep(1)
        back = PipeTransport()
        await session.attach(back)
        await hosted
        assert transport.closed is not None and transport.closed[0] == 4001
        assert back.closed is not None and back.closed[0] == 1011
        assert back.sent[-1]["error"]["code"] == "internal_error"

    run_virtual(main(), limit_s=100)


def test_a_loss_that_was_not_stepped_yet_comes_before_the_return() -> None:
    seen = list[Any]()

    async def main() -> None:
        registry, transport = Registry(1, Metrics()), PipeTransport()
        machine = ScriptedMachine(lambda event: seen.append(event) or [])
        session = SessionRuntime(
            transport, ScriptedCascade(), SETUP, conversation=machine, parking=registry.parking
        )
        hosted = asyncio.create_task(registry.host(session))
        await asyncio.sleep(1)
        back = PipeTransport()
        attached = asyncio.create_task(session.attach(back))
        transport.client_leaves()  # in the same moment
        await asyncio.sleep(1)
        assert [type(event) for event in seen[1:]] == [Disconnected, Reconnected]
        hosted.cancel()
        await asyncio.wait({hosted, attached})

    run_virtual(main(), limit_s=100)


def test_nothing_of_the_old_client_is_handled_beside_the_new_one() -> None:
    """Its last frame is still with the detector, which takes a second to let go of it."""

    class Detector(EnergyDetector):
        async def step(self, frame: Samples) -> float:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(1)
            return 0.0

    class Slow(ScriptedCascade):
        def detect(self) -> EnergyDetector:
            self.detectors.append(Detector(self))
            return self.detectors[-1]

    async def script(house: House) -> None:
        first = await house.open()
        first.client_sends(append(pcm(tone(100))))
        await asyncio.sleep(0.1)
        begin_s = asyncio.get_running_loop().time()
        await house.resume(token_of(first))
        assert asyncio.get_running_loop().time() - begin_s >= 1

    play(script, House(Slow()))


def test_a_session_cut_off_while_it_lets_a_client_go_keeps_nobody_waiting() -> None:
    class Breaking(PipeTransport):
        async def receive(self) -> str | bytes | None:
            frame = await super().receive()
            hosted.cancel()
            return frame

    async def main() -> None:
        nonlocal hosted
        registry, transport = Registry(1, Metrics()), PipeTransport()
        session = SessionRuntime(transport, ScriptedCascade(), SETUP, parking=registry.parking)
        hosted = asyncio.create_task(registry.host(session))
        await transport.until("session.created")
        back = Breaking()
        attached = asyncio.create_task(session.attach(back))
        await back.until("session.created")
        back.client_leaves()
        async with asyncio.timeout(5):
            await attached
        await asyncio.wait({hosted})
        assert registry.count == 0

    hosted: asyncio.Task[None]
    run_virtual(main(), limit_s=100)


def test_resumed_sessions_leave_nothing_behind() -> None:
    async def script(house: House) -> None:
        for _ in range(10):
            client = await house.open()
            for _ in range(3):
                client.client_leaves()
                await house.parked()
                client = await house.resume(token_of(client))
            client.client_leaves(1000)
            await asyncio.gather(*house.tasks)
            house.tasks.clear()

    play(script, House(ScriptedCascade()))
    gc.collect()
    assert [o for o in gc.get_objects() if type(o) is SessionRuntime] == []


@pytest.mark.parametrize(("code", "is_parked"), [(1000, False), (1001, True)])
def test_how_a_client_has_closed_counts_though_a_write_fails_first(
    code: int, is_parked: bool
) -> None:
    async def script(house: House) -> None:
        client = await house.open()
        client.breaks = True
        client.client_sends({"type": "response.cancel"})  # its answer cannot be written
        await asyncio.sleep(0.1)
        client.client_leaves(code)
        await asyncio.sleep(1)
        assert (house.registry.count, house.registry.parked) == (is_parked, is_parked)

    play(script, House(ScriptedCascade()))
