"""The driver with a machine that says what the test wants: order, deadlines, endings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from realtime.observe.metrics import Metrics
from realtime.runtime.clock import ManualClock
from realtime.runtime.driver import Driver
from realtime.runtime.egress import Egress, Frame
from realtime.runtime.hearing import Hearing
from realtime.runtime.item_audio import ItemAudio
from realtime.runtime.outlet import Clip
from realtime.runtime.performer import Performer
from realtime.runtime.work import Works
from realtime.session.effects import (
    CutLane,
    Effect,
    HoldLane,
    Notify,
    PlayReply,
    ReleaseLane,
    TellConversation,
)
from realtime.session.events import (
    AudioLeaving,
    ClientCommit,
    Disconnected,
    EgressDrained,
    Event,
    ReplyAudio,
    Tick,
)
from realtime.session.items import Item
from realtime.session.notices import Detail, InputCleared, Notice
from realtime.session.settings import AudioFormat
from realtime.session.states import Lifecycle
from tests.realtime.runtime.stand_ins import ScriptedCascade, ScriptedMachine

PLAY = PlayReply("r", "voice", 0, "resp", "item", 0, 0)
GO = ClientCommit(None, 0)


class Log:
    """An outlet; `lines` mixes what the machine was told with what left."""

    def __init__(self) -> None:
        self.lines: list[object] = []
        self.frames: list[Frame] = []
        self.stale: Frame | None = None
        self.has_audio_room = True

    def tell(self, notice: Notice) -> None:
        self.lines.append(notice)

    def tell_detail(self, detail: Detail) -> None:
        self.lines.append(detail)

    def tell_conversation(self, told: TellConversation) -> None:
        self.lines.append(told)

    def tell_retrieved(self, item: Item, clips: Mapping[int, Clip]) -> None:
        self.lines.append(item)

    def send(self, frame: Frame) -> None:
        self.lines.append(frame.total)
        self.frames.append(frame)

    def first_stale(self, lane: str) -> Frame | None:
        return self.stale

    def close(self, code: int, reason: str) -> None:
        self.lines.append((code, reason))


class Rig:
    def __init__(self, group: asyncio.TaskGroup, react: Callable[[Event], list[Effect]]) -> None:
        self.log = Log()
        self.clock = ManualClock(start_ms=1000)
        self.machine = ScriptedMachine(self._remember(react))
        self.egress = Egress(lead_ms=100)
        self.items = ItemAudio()
        works = Works(ScriptedCascade(), self.egress, Metrics(), group, self._deliver)
        performer = Performer(
            hearing=Hearing(),
            items=self.items,
            works=works,
            egress=self.egress,
            outlet=self.log,
            metrics=Metrics(),
            label="test",
        )
        self.driver = Driver(
            conversation=self.machine,
            clock=self.clock,
            performer=performer,
            egress=self.egress,
            works=works,
            outlet=self.log,
        )
        self.task = group.create_task(self.driver.run())

    def _remember(self, react: Callable[[Event], list[Effect]]) -> Callable[[Event], list[Effect]]:
        def both(event: Event) -> list[Effect]:
            self.log.lines.append(event)
            return react(event)

        return both

    def _deliver(self, event: Event) -> None:
        self.driver.handle(event)

    async def pass_time(self, by_ms: float) -> None:
        self.clock.advance(by_ms)
        for _ in range(5):
            await asyncio.sleep(0)

    def speak(self, samples: int) -> None:
        self.egress.open("r", AudioFormat())
        self.egress.add("r", np.full(samples, 0.1, dtype=np.float32))


def drive(
    script: Callable[[Rig], object], react: Callable[[Event], list[Effect]] = lambda _: []
) -> Rig:
    """Run a coroutine function over a rig, then lose the client."""

    async def main() -> Rig:
        async with asyncio.TaskGroup() as group:
            rig = Rig(group, react)
            await asyncio.sleep(0)
            outcome = script(rig)
            if asyncio.iscoroutine(outcome):
                await outcome
            rig.driver.lose_client()
        return rig

    return asyncio.run(main())


def on(kind: type, *effects: Effect) -> Callable[[Event], list[Effect]]:
    return lambda event: list(effects) if isinstance(event, kind) else []


def test_a_frame_is_announced_before_it_leaves_and_the_end_after() -> None:
    def script(rig: Rig) -> None:
        rig.speak(1500)
        rig.egress.finish("r")
        rig.driver.handle(GO)

    rig = drive(script, on(ClientCommit, PLAY))
    assert rig.log.lines[:6] == [
        GO,
        *(AudioLeaving("r", 960), 960),
        *(AudioLeaving("r", 1500), 1500),
        EgressDrained("r"),
    ]
    recording = rig.items.get("item")
    assert recording is not None and recording.samples == 1500


def test_effects_of_the_announcement_come_before_the_frame() -> None:
    """What the machine wants before the sound, such as its text, is told before."""

    def script(rig: Rig) -> None:
        rig.speak(960)
        rig.driver.handle(GO)

    def react(event: Event) -> list[Effect]:
        match event:
            case ClientCommit():
                return [PLAY]
            case AudioLeaving():
                return [Notify(InputCleared())]
            case _:
                return []

    assert drive(script, react).log.lines[2:4] == [InputCleared(), 960]


@pytest.mark.parametrize("stop", [HoldLane("voice"), CutLane("voice", 1, "r", 0)])
def test_an_announced_frame_that_is_stopped_does_not_leave(stop: Effect) -> None:
    def script(rig: Rig) -> None:
        rig.speak(9600)
        rig.driver.handle(GO)

    def react(event: Event) -> list[Effect]:
        match event:
            case ClientCommit():
                return [PLAY]
            case AudioLeaving():
                return [stop]
            case _:
                return []

    lines = drive(script, react).log.lines
    assert [line for line in lines if isinstance(line, int)] == []


@pytest.mark.parametrize("socket_is_behind", [False, True])
def test_a_cut_fades_from_where_the_listener_is(socket_is_behind: bool) -> None:
    """Frames that still wait for the socket die; the fade goes on where they would have begun."""

    def script(rig: Rig) -> None:
        rig.speak(9600)
        rig.driver.handle(GO)
        if socket_is_behind:
            rig.log.stale = replace(
                rig.log.frames[-1], samples=np.full(960, 0.25, dtype=np.float32)
            )
        rig.driver.handle(ReplyAudio("x", 0, 0))

    def react(event: Event) -> list[Effect]:
        match event:
            case ClientCommit():
                return [PLAY]
            case ReplyAudio():
                return [CutLane("voice", 1, "r", 120)]
            case _:
                return []

    fade = drive(script, react).log.frames[-1]
    assert fade.epoch == 1 and len(fade.samples) == 120
    assert fade.samples[0] == pytest.approx(0.25 if socket_is_behind else 0.1)
    assert fade.samples[-1] == 0


def test_frames_leave_as_they_are_played() -> None:
    async def script(rig: Rig) -> None:
        rig.speak(24_000)
        rig.driver.handle(GO)
        sent = [line for line in rig.log.lines if isinstance(line, int)]
        assert sent == [960, 1920]
        for count in (3, 4, 5):
            await rig.pass_time(40)
            sent = [line for line in rig.log.lines if isinstance(line, int)]
            assert len(sent) == count

    drive(script, on(ClientCommit, PLAY))


def test_frames_wait_for_the_socket() -> None:
    async def script(rig: Rig) -> None:
        rig.log.has_audio_room = False
        rig.speak(960)
        rig.driver.handle(GO)
        assert AudioLeaving("r", 960) not in rig.log.lines
        await rig.pass_time(1000)
        assert AudioLeaving("r", 960) not in rig.log.lines
        rig.log.has_audio_room = True
        rig.driver.wake()
        await rig.pass_time(0)
        assert rig.log.lines[-1] == 960

    drive(script, on(ClientCommit, PLAY))


def test_held_frames_leave_after_the_release() -> None:
    async def script(rig: Rig) -> None:
        rig.speak(960)
        rig.driver.handle(GO)
        await rig.pass_time(500)
        assert 960 not in rig.log.lines
        rig.driver.handle(ReplyAudio("x", 0, 0))
        assert rig.log.lines[-1] == 960

    def react(event: Event) -> list[Effect]:
        match event:
            case ClientCommit():
                return [PLAY, HoldLane("voice")]
            case ReplyAudio():
                return [ReleaseLane("voice")]
            case _:
                return []

    drive(script, react)


def test_deadlines_become_ticks_once_and_in_time() -> None:
    async def script(rig: Rig) -> None:
        rig.machine.deadline_ms = 1500
        rig.driver.handle(GO)
        await rig.pass_time(499)
        assert Tick() not in rig.log.lines
        rig.machine.is_satisfied_by_ticks = True
        await rig.pass_time(1)
        assert rig.machine.events[-1] == (1500, Tick())
        await rig.pass_time(5000)
        assert rig.log.lines.count(Tick()) == 1

    drive(script)


def test_a_timer_that_fires_a_rounding_early_counts() -> None:
    async def script(rig: Rig) -> None:
        rig.machine.deadline_ms = 1500
        rig.machine.is_satisfied_by_ticks = True
        await rig.pass_time(499.995)
        rig.driver.wake()
        await rig.pass_time(0)
        assert rig.machine.events == [(1500, Tick())]

    drive(script)


def test_an_earlier_deadline_wakes_the_sleeper() -> None:
    async def script(rig: Rig) -> None:
        rig.machine.deadline_ms = 9000
        rig.driver.handle(GO)
        await rig.pass_time(0)
        rig.machine.deadline_ms = 1010
        rig.driver.handle(GO)
        await rig.pass_time(10)
        assert Tick() in rig.log.lines
        rig.machine.deadline_ms = None

    drive(script)


def test_time_never_goes_back() -> None:
    async def script(rig: Rig) -> None:
        rig.driver.handle(GO)
        rig.clock.advance(-300)
        rig.driver.handle(GO)
        assert [now for now, _ in rig.machine.events] == [1000, 1000]

    drive(script)


def test_losing_the_client_is_the_last_event() -> None:
    rig = drive(lambda rig: None)
    assert rig.log.lines == [Disconnected(resumable=False)]
    rig.driver.handle(GO)
    assert rig.log.lines == [Disconnected(resumable=False)]
    assert rig.driver.is_over


def test_a_client_that_may_come_back_leaves_the_driver_running() -> None:
    lost = Disconnected(resumable=True)

    async def script(rig: Rig) -> None:
        rig.driver.lose_client(lost)
        assert rig.log.lines == []
        rig.driver.settle_loss()
        assert rig.log.lines == [lost], "at once, for whoever cannot wait"
        rig.driver.settle_loss()
        await rig.pass_time(10)
        assert rig.log.lines == [lost] and not rig.driver.is_over
        rig.driver.lose_client(lost)
        await rig.pass_time(10)
        assert rig.log.lines == [lost, lost]
        rig.log.lines.clear()

    drive(script)


def test_a_closed_conversation_ends_the_driver() -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            rig = Rig(group, lambda _: [])
            rig.machine.lifecycle = Lifecycle.CLOSED
            rig.driver.handle(GO)
            await rig.task
        assert rig.log.lines == [GO]

    asyncio.run(main())


def test_a_failing_machine_ends_the_session_not_the_caller() -> None:
    def react(event: Event) -> list[Effect]:
        raise ValueError("a bug")

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.TaskGroup() as group:
                rig = Rig(group, react)
                await asyncio.sleep(0)
                rig.driver.handle(GO)  # returns
                await rig.task
        assert caught.group_contains(ValueError, match="a bug")

    asyncio.run(main())
