"""The queue to the socket: order, the epoch gate, and clients that do not read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from pipelines.fakes.virtual_time import run_virtual
from realtime.observe.metrics import Count, Metrics
from realtime.runtime.egress import Frame
from realtime.runtime.outbound import OVERFLOWED, STALLED, Outbound
from realtime.session.effects import PlayReply
from realtime.session.settings import AudioFormat
from tests.realtime.runtime.stand_ins import PipeTransport


class Rig:
    def __init__(self) -> None:
        self.epoch = 0
        self.rooms = 0
        self.lost: list[tuple[int, str]] = []
        self.metrics = Metrics()
        self.transport = PipeTransport()
        self.outbound = Outbound(
            lambda _, epoch: epoch >= self.epoch,
            self.metrics,
            on_room=self._on_room,
            on_lost=lambda code, reason: self.lost.append((code, reason)),
        )

    def _on_room(self) -> None:
        self.rooms += 1

    def say(self, text: str) -> None:
        self.outbound.put(f'"{text}"', len(text))

    def frame(self, name: str, epoch: int) -> None:
        play = PlayReply("r", "voice", epoch, "resp", "item", 0, 0)
        frame = Frame(play, epoch, AudioFormat(), np.zeros(960, np.float32), 960)
        self.outbound.put_frame(frame, lambda: f'"{name}"')

    async def drain(self) -> None:
        self.outbound.put_close(1000, "bye")
        await self.outbound.run(self.transport)


def rigged(act: Callable[[Rig], None]) -> Rig:
    async def main() -> Rig:
        rig = Rig()
        act(rig)
        await rig.drain()
        return rig

    return run_virtual(main(), limit_s=60)


def test_everything_is_sent_in_order_and_then_the_close() -> None:
    def act(rig: Rig) -> None:
        rig.say("one")
        rig.frame("audio", 0)
        rig.outbound.put(lambda: '"made in a thread"', 100_000, in_thread=True)
        rig.say("three")

    rig = rigged(act)
    assert rig.transport.sent == ["one", "audio", "made in a thread", "three"]
    assert rig.transport.closed == (1000, "bye")
    assert rig.lost == []


def test_a_frame_of_an_older_epoch_dies_in_the_queue() -> None:
    def act(rig: Rig) -> None:
        rig.frame("old", 0)
        rig.say("cut")
        assert rig.outbound.first_stale("voice") is None
        rig.epoch = 1
        stale = rig.outbound.first_stale("voice")
        assert stale is not None and stale.epoch == 0
        assert rig.outbound.first_stale("another lane") is None
        rig.frame("new", 1)

    rig = rigged(act)
    assert rig.transport.sent == ["cut", "new"]
    assert rig.metrics.counts[Count.STALE_FRAMES_DROPPED] == 1


def test_audio_waits_for_the_socket_where_it_can_still_be_cut() -> None:
    def act(rig: Rig) -> None:
        frames = 0
        while rig.outbound.has_audio_room:
            rig.frame("audio", 0)
            frames += 1
        assert frames == 4

    assert rigged(act).rooms == 1


@pytest.mark.parametrize("waits_s", [9.0, 11.0])
def test_a_client_that_stands_still_is_let_go(waits_s: float) -> None:
    async def main() -> Rig:
        rig = Rig()
        rig.transport.stalls = True
        rig.say("hello")
        writer = asyncio.create_task(rig.outbound.run(rig.transport))
        await asyncio.sleep(waits_s)
        if writer.done():
            return rig
        writer.cancel()
        await asyncio.wait({writer})
        return rig

    lost = run_virtual(main()).lost
    assert lost == ([(1008, STALLED)] if waits_s > 10 else [])


def test_the_queue_is_bounded() -> None:
    async def main() -> None:
        rig = Rig()
        for n in range(10_000):
            rig.say(str(n))
        assert rig.lost == [(1008, OVERFLOWED)]
        assert rig.outbound.depth == 0  # given up: memory is free at once
        await rig.outbound.run(rig.transport)
        assert rig.transport.sent == []

    run_virtual(main())


def test_large_texts_count_by_their_size() -> None:
    async def main() -> None:
        rig = Rig()
        for _ in range(4):
            rig.outbound.put("x", 7 * 2**20)
        assert rig.lost == [(1008, OVERFLOWED)]

    run_virtual(main())


@pytest.mark.parametrize(("entries", "size_bytes"), [(600, 3), (2, 5 * 2**20)])
def test_a_crowd_holds_the_reading_back_until_it_is_gone(entries: int, size_bytes: int) -> None:
    async def main() -> None:
        rig = Rig()
        for _ in range(entries):
            rig.outbound.put('"x"', size_bytes)
        waiting = asyncio.create_task(rig.outbound.uncrowded())
        await asyncio.sleep(0)
        assert not waiting.done()
        await rig.drain()
        await waiting
        assert rig.lost == []

    run_virtual(main())


def test_a_broken_socket_ends_the_writing() -> None:
    async def main() -> None:
        rig = Rig()
        rig.transport.breaks = True
        rig.say("hello")
        await rig.outbound.run(rig.transport)
        assert rig.lost == [(1006, "connection lost")]

    run_virtual(main())


def test_a_series_is_one_event_whose_texts_are_made_as_they_are_sent() -> None:
    made = list[int]()

    async def main() -> None:
        rig = Rig()

        def texts() -> Iterator[str]:
            for number in range(5000):
                made.append(number)
                assert len(rig.transport.sent) == number
                yield str(number)

        rig.outbound.put_series(texts())
        assert made == [] and rig.outbound.depth == 1
        await rig.drain()
        assert rig.transport.sent == list(range(5000)) and rig.lost == []

    run_virtual(main(), limit_s=60)


def test_a_series_ends_with_its_client() -> None:
    async def main() -> None:
        rig = Rig()
        rig.transport.breaks = True
        made = list[int]()
        rig.outbound.put_series(str(made.append(1) or 0) for _ in range(10))
        await rig.outbound.run(rig.transport)
        assert made == [1] and rig.lost == [(1006, "connection lost")]

    run_virtual(main(), limit_s=60)


def test_audio_that_was_not_handed_on_is_counted() -> None:
    async def main() -> None:
        rig = Rig()
        rig.frame("one", 0)
        rig.frame("two", 0)
        assert rig.outbound.unsent == (("item", 1920),)
        rig.transport.stalls = True
        async with asyncio.timeout(20):
            await rig.outbound.run(rig.transport)
        assert rig.lost[0][1] == STALLED
        assert rig.outbound.unsent == (("item", 1920),), "the one being sent, and the one behind"

    run_virtual(main(), limit_s=60)


def test_audio_that_was_handed_on_is_not_counted() -> None:
    rig = rigged(lambda rig: rig.frame("one", 0))
    assert rig.outbound.unsent == ()
