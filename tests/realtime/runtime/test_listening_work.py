"""Recognitions that listen while the turn goes on: their audio, their failures, their ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import numpy as np

from pipelines.fakes.virtual_time import run_virtual
from pipelines.types import HEARING_RATE_HZ, RecogniseRequest, Samples, StageError, Transcript
from realtime.observe.metrics import Metrics
from realtime.runtime.egress import Egress
from realtime.runtime.hearing import Hearing
from realtime.runtime.turn_audio import TurnAudio
from realtime.runtime.work import Works
from realtime.session.events import Event, TranscriptFailed, TranscriptFinal
from tests.realtime.runtime.stand_ins import ScriptedCascade, ScriptedStream

FRAME = 512
LISTEN = RecogniseRequest("h1", wants_partials=True)


def count_up(start: int, count: int) -> Samples:
    return ((np.arange(start, start + count) % 30_000) / 32768).astype(np.float32)


class Rig:
    def __init__(self, group: asyncio.TaskGroup, cascade: ScriptedCascade) -> None:
        self.events: list[Event] = []
        self.hearing = Hearing()
        self.works = Works(cascade, Egress(), Metrics(), group, self.events.append)

    async def hear(self, frames: int) -> None:
        for _ in range(frames):
            self.hearing.write(count_up(self.hearing.position, FRAME))
            self.works.notice_audio()
            await asyncio.sleep(0)

    def listen(self, turn: int = 1, start: int = 0) -> None:
        self.hearing.keep(turn, start)
        audio = TurnAudio(
            lambda start, end: self.hearing.read(turn, start, end),
            lambda: self.hearing.position,
            start,
        )
        self.works.listen(LISTEN, audio)

    async def settle(self) -> None:
        async with asyncio.timeout(100):
            while self.works.open_requests:
                self.works.changed.clear()
                await self.works.changed.wait()


def run(cascade: ScriptedCascade, play: Callable[[Rig], Awaitable[None]]) -> Rig:
    rigs = list[Rig]()

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            rigs.append(Rig(group, cascade))
            await play(rigs[0])
            rigs[0].works.close()

    run_virtual(main())
    return rigs[0]


def test_what_is_heard_of_a_turn_has_no_gap_and_ends_where_the_turn_does() -> None:
    cascade = ScriptedCascade()

    async def play(rig: Rig) -> None:
        await rig.hear(3)
        rig.listen(start=700)
        await rig.hear(30)
        assert rig.works.hear_out("h1", 33 * FRAME - 100)
        await rig.hear(5)
        await rig.settle()

    rig = run(cascade, play)
    assert rig.events == [TranscriptFinal("h1", "hello")]
    assert np.array_equal(cascade.heard[0], count_up(700, 33 * FRAME - 800))


class BrokenStream(ScriptedStream):
    async def push(self, item: object) -> None:
        raise StageError("asr_overrun", "Too much.")


def test_why_a_listening_recogniser_failed_is_told() -> None:
    class Closed(ScriptedCascade):
        def recognise(self, request: RecogniseRequest) -> ScriptedStream:
            raise StageError("stage_closed", "It stops.")

    class Broken(ScriptedCascade):
        def recognise(self, request: RecogniseRequest) -> ScriptedStream:
            async def script() -> AsyncIterator[Transcript]:
                await asyncio.sleep(1000)
                yield Transcript("", is_final=True)

            return BrokenStream(self, script)

    async def play(rig: Rig) -> None:
        rig.listen()
        await rig.hear(10)
        await rig.settle()

    for cascade, code in ((Closed(), "stage_closed"), (Broken(), "asr_overrun")):
        rig = run(cascade, play)
        assert [e.code for e in rig.events if isinstance(e, TranscriptFailed)] == [code]
        assert cascade.active == 0


def test_a_recogniser_that_never_comes_to_an_end_is_given_up() -> None:
    cascade = ScriptedCascade()

    async def play(rig: Rig) -> None:
        cascade.recognise_gate = asyncio.Event()
        rig.listen()
        await rig.hear(10)
        rig.works.hear_out("h1", rig.hearing.position)
        await rig.settle()

    rig = run(cascade, play)
    assert [e.code for e in rig.events if isinstance(e, TranscriptFailed)] == ["stage_timeout"]
    assert cascade.active == 0


def test_a_turn_dropped_while_it_is_listened_to_leaves_nothing_behind() -> None:
    cascade = ScriptedCascade()

    async def play(rig: Rig) -> None:
        rig.listen()
        await rig.hear(10)
        rig.hearing.drop(1)
        rig.works.abort("h1")
        await rig.hear(10)
        await rig.settle()

    rig = run(cascade, play)
    assert not rig.events and cascade.active == 0 and rig.works.open_requests == 0


def test_a_request_aborted_before_it_began_may_not_be_heard_out() -> None:
    cascade = ScriptedCascade()

    async def play(rig: Rig) -> None:
        rig.listen()
        rig.works.abort("h1")
        assert not rig.works.hear_out("h1", FRAME)
        await rig.settle()

    rig = run(cascade, play)
    assert not rig.events and cascade.active == 0


def test_a_turn_longer_than_the_ring_is_heard_from_its_beginning() -> None:
    cascade = ScriptedCascade()

    async def play(rig: Rig) -> None:
        rig.listen()
        await rig.hear(40 * HEARING_RATE_HZ // FRAME)
        rig.works.hear_out("h1", rig.hearing.position)
        await rig.settle()

    run(cascade, play)
    assert len(cascade.heard[0]) == 40 * HEARING_RATE_HZ // FRAME * FRAME
