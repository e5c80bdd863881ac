"""Streams whose listeners have enough rest; who runs dry goes first; what comes late is kept."""

from __future__ import annotations

import asyncio

from pipelines.runtime.stepped import SteppedStage
from pipelines.types import Urgency
from tests.pipelines.runtime.singer import PIECE_S, Singer, on_stage, request, started
from tests.pipelines.waiting import check, until


def test_a_stream_rests_while_its_listener_has_enough_and_comes_back_well_below() -> None:
    async def script(model: Singer, stage: SteppedStage) -> None:
        stream = stage.open(request("a"))
        await stream.push(80)  # ten seconds
        await until(lambda: stage.stats.paused == 1)
        assert len(model.batches) == 8, "one second"
        assert stage.stats.least_lead_s == stage.stats.most_lead_s == 1.0
        for _ in range(3):
            assert await anext(stream) == PIECE_S
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(model.batches) == 8, "above half a second it goes on resting"
        await anext(stream)
        await until(lambda: stage.stats.paused == 1)
        assert len(model.batches) == 12
        assert stage.stats.slots_used == 1, "its slot keeps its state"
        await stream.finish()
        assert len([piece async for piece in stream]) == 76

    on_stage(script, slots=2)


def test_the_steps_go_to_others_meanwhile() -> None:
    async def script(model: Singer, stage: SteppedStage) -> None:
        rich = stage.open(request("rich"))
        await rich.push(80)
        await until(lambda: stage.stats.paused == 1)
        poor = stage.open(request("poor"))
        await poor.push(20)
        await poor.finish()
        assert len([piece async for piece in poor]) == 20
        assert model.turns("rich") == 8

    on_stage(script, slots=2)


def test_an_abort_while_resting_frees_the_slot_at_once() -> None:
    async def main() -> None:
        model = Singer(slots=1)
        model.allow(8)
        async with started(model) as stage:
            stream = stage.open(request("a"))
            await stream.push(80)
            await until(lambda: stage.stats.paused == 1)
            stream.abort()
            await until(lambda: stage.active == 0)
            assert len(model.batches) == 8 and model.names == {}
            assert [piece async for piece in stream] == []

    check(main)


def test_who_has_not_sounded_goes_before_who_runs_dry_before_who_has_enough() -> None:
    async def main() -> None:
        model = Singer(slots=4)
        async with started(model) as stage:
            streams = {}
            for name in ("steady", "dry", "draft"):
                asked = Urgency.DRAFT if name == "draft" else Urgency.FIRST_AUDIO
                streams[name] = stage.open(request(name, asked))
                await streams[name].push(80)
            # However the first steps were shared out, each has made three pieces then.
            model.allow(1)
            await until(lambda: len(model.batches) == 1)
            while min(model.turns(name) for name in streams) < 3:
                model.allow(1)
                count = len(model.batches)
                await until(lambda count=count: len(model.batches) > count)
            while streams["dry"].outlet.unread_s > PIECE_S:
                await anext(streams["dry"])
            first = stage.open(request("first"))
            await first.push(80)
            model.allow(2)
            await until(lambda: "first" in model.batches[-1])
            assert model.batches[-1] == ["first", "dry", "steady", "draft"]

    check(main)


def test_sound_that_comes_late_reaches_a_stream_that_rests() -> None:
    async def main() -> None:
        model = Singer(slots=2, late=2)
        model.allow(1000)
        async with started(model) as stage:
            stream = stage.open(request("a"))
            await stream.push(20)
            await until(lambda: stage.stats.paused == 1)
            assert model.turns("a") == 10 and len(model.under_way) == 2
            other = stage.open(request("b"))
            await other.push(3)
            await other.finish()
            assert len([piece async for piece in other]) == 3
            assert model.turns("a") == 10 and stream.outlet.unread_s == 10 * PIECE_S
            await stream.finish()
            assert len([piece async for piece in stream]) == 20

    check(main)


def test_late_sound_of_a_dead_stream_goes_nowhere() -> None:
    async def main() -> None:
        model = Singer(slots=1, late=2)
        async with started(model) as stage:
            dead = stage.open(request("dead"))
            await dead.push(4)
            model.allow(2)
            await until(lambda: len(model.under_way) == 2)
            dead.abort()
            model.allow(1000)
            heir = stage.open(request("heir"))
            await heir.push(5)
            await heir.finish()
            assert [piece async for piece in heir] == [PIECE_S] * 5
            assert [piece async for piece in dead] == []

    check(main)


def test_a_stage_tells_what_it_does_and_could_do() -> None:
    """Steps of 50 ms make 125 ms each: one stream alone is 2.5 times real time."""

    async def main() -> None:
        model = Singer(slots=2)
        model.allow(10_000)
        async with started(model) as stage:
            assert stage.capacity is None and stage.stats.capacity is None
            streams = [stage.open(request(name)) for name in "abc"]
            await until(lambda: stage.stats.slots_used == 2)
            assert (stage.stats.active, stage.stats.queued, stage.stats.slots) == (3, 1, 2)
            streams[2].abort()
            for stream in streams[:2]:
                await stream.push(80)
                await stream.finish()
                assert len([piece async for piece in stream]) == 80
            stats = stage.stats
            assert stats.aborts == 1 and stats.active == 0 and stats.slots_used == 0
            assert stats.audio_s_per_s is not None and stats.steps_per_s is not None
            assert 2.3 < stats.audio_s_per_s < 2.7 and 18 < stats.steps_per_s < 22
            assert stage.capacity is not None and stage.capacity.streams == 2
            assert stats.capacity == stage.capacity

    check(main)


def test_who_interrupts_again_and_again_is_one_listener() -> None:
    """Steps of 50 ms make 125 ms, of which an interrupted reply's listener has heard 50."""

    async def main() -> None:
        model = Singer(slots=4)
        model.allow(10_000)
        async with started(model) as stage:
            for number in range(12):
                stream = stage.open(request(f"reply {number}"))
                await stream.push(80)
                for _ in range(20):
                    await anext(stream)
                stream.abort()
                await until(lambda: stage.active == 0)
            capacity = stage.capacity
            assert capacity is not None
            assert 0.5 < capacity.delivers < 1.1, "it made two and a half times as much"

    check(main)
