"""Who waits for a slot gets one: of a draft at once, of a whole text as soon as it is spoken."""

from __future__ import annotations

import asyncio

import pytest

from pipelines.runtime.stepped import SteppedStage
from pipelines.types import StageError, Urgency
from tests.pipelines.runtime.singer import LEAD, PIECE_S, Singer, on_stage, request
from tests.pipelines.waiting import until

MOST = 160  # pieces of 125 ms in the most that a stream may hold unread


async def rested(stage: SteppedStage, name: str, urgency: Urgency, pieces: int = 80):
    """A stream in a slot whose reader has enough."""
    stream = stage.open(request(name, urgency))
    await stream.push(pieces)
    await until(lambda: stream.paused)
    return stream


def test_a_live_turn_takes_the_slot_of_a_resting_draft_within_a_step() -> None:
    async def script(model: Singer, stage: SteppedStage) -> None:
        draft = await rested(stage, "draft", Urgency.DRAFT)
        steps = len(model.batches)
        live = stage.open(request("live"))
        await live.push(3)
        await live.finish()
        assert await anext(live) == PIECE_S
        assert model.batches[steps] == ["live"]
        with pytest.raises(StageError) as raised:
            async for _ in draft:
                pass
        assert raised.value.code == "draft_evicted" and "live" not in raised.value.message
        assert len([piece async for piece in live]) == 2

    on_stage(script, slots=1)


def test_the_latest_silent_draft_makes_room_before_one_that_has_sounded() -> None:
    async def script(model: Singer, stage: SteppedStage) -> None:
        steady = await rested(stage, "steady", Urgency.STEADY)
        sounded = await rested(stage, "sounded", Urgency.DRAFT)
        silent = [stage.open(request(name, Urgency.DRAFT)) for name in ("early", "late")]
        await until(lambda: stage.stats.slots_used == 4)
        for number, victim in enumerate([silent[1], silent[0], sounded]):
            await rested(stage, f"live {number}", Urgency.FIRST_AUDIO)
            with pytest.raises(StageError, match="draft"):
                async for _ in victim:
                    pass
        waiting = stage.open(request("one more"))
        await waiting.push(1)
        for _ in range(50):
            await asyncio.sleep(0)
        assert stage.stats.queued == 1 and steady.paused, "its text may still go on"

    on_stage(script, slots=4)


def test_a_draft_takes_the_slot_of_nobody() -> None:
    async def script(model: Singer, stage: SteppedStage) -> None:
        draft = await rested(stage, "draft", Urgency.DRAFT)
        other = stage.open(request("other", Urgency.DRAFT))
        await other.push(1)
        for _ in range(50):
            await asyncio.sleep(0)
        assert draft.slot is not None and stage.stats.queued == 1
        other.hurry(Urgency.FIRST_AUDIO)
        draft.hurry(Urgency.STEADY)
        await draft.finish()
        assert await anext(other) == PIECE_S, "nothing more is to be said in the slot"
        assert len([piece async for piece in draft]) == 80

    on_stage(script, slots=1)


def test_a_resting_stream_whose_text_is_whole_runs_to_its_end_for_who_waits() -> None:
    async def script(model: Singer, stage: SteppedStage) -> None:
        whole = await rested(stage, "whole", Urgency.STEADY)
        await whole.finish()
        open_ended = await rested(stage, "open", Urgency.STEADY)
        await until(lambda: whole.paused and whole.fed_end)
        assert model.turns("whole") == 8, "nobody waits"
        live = stage.open(request("live"))
        await live.push(1)
        await live.finish()
        assert [piece async for piece in live] == [PIECE_S]
        assert model.turns("whole") >= 80 and model.turns("open") == 8
        # Nothing of what was made is lost, though its slot is another's.
        assert len([piece async for piece in whole]) == 80
        await open_ended.finish()
        assert len([piece async for piece in open_ended]) == 80

    on_stage(script, slots=2)


def test_what_rushes_holds_so_many_seconds_and_no_more() -> None:
    async def script(model: Singer, stage: SteppedStage) -> None:
        long = await rested(stage, "long", Urgency.STEADY, pieces=MOST + 20)
        await long.finish()
        live = stage.open(request("live"))
        await live.push(1)
        await live.finish()
        await until(lambda: model.turns("long") == MOST)
        for _ in range(50):
            await asyncio.sleep(0)
        assert long.outlet.unread_s == LEAD.most_s and model.turns("long") == MOST
        pieces = [piece async for piece in long]
        assert len(pieces) == MOST + 20
        assert [piece async for piece in live] == [PIECE_S]

    on_stage(script, slots=1)


def test_nobody_rushes_while_a_listener_runs_dry() -> None:
    async def script(model: Singer, stage: SteppedStage) -> None:
        whole = await rested(stage, "whole", Urgency.STEADY)
        await whole.finish()
        await until(lambda: whole.fed_end)
        dry = await rested(stage, "dry", Urgency.STEADY, pieces=30)
        while model.permits.acquire(blocking=False):
            pass
        live = stage.open(request("live"))
        # Who rushes now is in the next step already, which waits for its permit.
        dry.hurry(Urgency.RUNNING_DRY)
        while not dry.outlet.has_room:
            await anext(dry)
        turns = model.turns("whole")
        for number in range(4):
            model.allow(1)
            await until(lambda number=number: model.turns("dry") >= 9 + number)
        assert model.turns("whole") <= turns + 1
        model.allow(1000)
        await live.finish()
        assert [piece async for piece in live] == []

    on_stage(script, slots=2)


def test_who_never_gets_a_slot_is_told_that_slots_are_missing() -> None:
    async def script(model: Singer, stage: SteppedStage) -> None:
        await rested(stage, "talks on", Urgency.STEADY)
        live = stage.open(request("live"))
        await live.push(1)
        with pytest.raises(StageError) as raised:
            await anext(live)
        assert raised.value.code == "no_free_slot" and "slots" in raised.value.message
        await until(lambda: stage.active == 1)

    on_stage(script, slots=1, stall_timeout_ms=20)
