"""How much sound may wait for its reader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import numpy as np
import pytest

from pipelines.fakes.virtual_time import run_virtual
from pipelines.runtime.lead import SPEAKER_LEAD, Lead, speech_seconds
from pipelines.runtime.outlet import Outlet
from pipelines.runtime.ticket import Ticket
from pipelines.types import SpeechDelta, StageError, Urgency

LEAD: Lead[float] = Lead(float, limit_s=1.0, resume_s=0.5)  # outputs are their own length


class Rig:
    def __init__(self, limit: int = 100, lead: Lead[float] | None = LEAD) -> None:
        self.ticket = Ticket("r", Urgency.STEADY)
        self.rooms = 0
        self.outlet: Outlet[float] = Outlet("tts", self.ticket, limit, self._on_room, 1000, lead)

    def _on_room(self) -> None:
        self.rooms += 1


def rigged(script: Callable[[], Coroutine[None, None, None]]) -> None:
    run_virtual(script())


def test_enough_seconds_close_it_until_they_are_well_below() -> None:
    async def main() -> None:
        rig = Rig()
        for _ in range(4):
            assert rig.outlet.has_room
            rig.outlet.put(0.25)
        assert not rig.outlet.has_room and rig.outlet.unread_s == 1.0
        rig.outlet.put(0.25)  # what comes late is kept all the same
        seen = list[tuple[bool, int]]()
        for _ in range(5):
            await rig.outlet.next()
            seen.append((rig.outlet.has_room, rig.rooms))
        assert seen == [(False, 0), (False, 0), (True, 1), (True, 1), (True, 1)]
        assert rig.outlet.unread_s == 0

    rigged(main)


def test_the_count_still_limits() -> None:
    async def main() -> None:
        rig = Rig(limit=2)
        rig.outlet.put(0.0)
        assert rig.outlet.has_room
        rig.outlet.put(0.0)
        assert not rig.outlet.has_room and not rig.outlet.has_room_for(0.0)
        await rig.outlet.next()
        assert rig.outlet.has_room and rig.rooms == 1

    rigged(main)


def test_what_has_no_length_need_not_wait_for_sound_to_be_heard() -> None:
    async def main() -> None:
        rig = Rig(limit=3)
        rig.outlet.put(2.0)
        assert rig.outlet.has_room_for(0.0) and not rig.outlet.has_room_for(0.1)
        rig.outlet.put(0.0)
        rig.outlet.put(0.0)
        assert not rig.outlet.has_room_for(0.0)
        assert await rig.outlet.next() == 2.0
        assert rig.outlet.has_room_for(0.0) and rig.rooms == 1

    rigged(main)


def test_room_for_outputs_without_length_is_told_while_seconds_still_close_it() -> None:
    async def main() -> None:
        rig = Rig(limit=3)
        for length in (0.0, 1.0, 1.0):
            rig.outlet.put(length)
        await rig.outlet.next()
        assert rig.rooms == 1 and rig.outlet.has_room_for(0.0) and not rig.outlet.has_room

    rigged(main)


def test_a_pause_is_no_stall() -> None:
    """The stall clock runs while somebody reads."""

    async def main() -> None:
        rig = Rig()
        rig.outlet.owe(True)
        rig.outlet.put(1.0)
        rig.outlet.put(0.0)
        await asyncio.sleep(20)
        await rig.outlet.next()
        assert rig.outlet.has_room
        await asyncio.sleep(0.9)
        await rig.outlet.next()
        with pytest.raises(StageError, match="stage_timeout|gave nothing"):
            await rig.outlet.next()
        assert asyncio.get_running_loop().time() == pytest.approx(21.9, abs=0.01)

    rigged(main)


def test_a_reader_who_was_elsewhere_has_missed_nothing() -> None:
    async def main() -> None:
        rig = Rig()
        rig.outlet.owe(True)
        await asyncio.sleep(20)
        asyncio.get_running_loop().call_later(0.9, rig.outlet.put, 0.25)
        assert await rig.outlet.next() == 0.25

    rigged(main)


def test_who_rushes_is_bounded_in_seconds() -> None:
    async def main() -> None:
        rig = Rig(limit=2, lead=Lead(float, limit_s=1.0, resume_s=0.5, most_s=3.0))
        for _ in range(11):
            rig.outlet.put(0.25)
        assert not rig.outlet.has_room and rig.outlet.may_rush
        rig.outlet.put(0.25)
        assert not rig.outlet.may_rush

    rigged(main)


def test_an_abort_forgets_what_waited() -> None:
    async def main() -> None:
        rig = Rig()
        rig.outlet.put(3.0)
        rig.ticket.abort()
        assert rig.outlet.unread_s == 0
        with pytest.raises(StopAsyncIteration):
            await rig.outlet.next()

    rigged(main)


def test_speech_weighs_what_it_lasts() -> None:
    samples = np.zeros(12_000, np.float32)
    assert speech_seconds(SpeechDelta(samples, 24_000, 0)) == 0.5
    assert SPEAKER_LEAD.weigh(SpeechDelta(samples, 48_000, 0)) == 0.25


@pytest.mark.parametrize(
    ("limit_s", "resume_s", "dry_s"), [(1.0, 1.0, 0.1), (1.0, 0.5, 0.6), (1.0, 0.5, -0.1)]
)
def test_a_lead_that_cannot_work_is_refused(limit_s: float, resume_s: float, dry_s: float) -> None:
    with pytest.raises(ValueError, match="dry_s <= resume_s < limit_s"):
        Lead(float, limit_s, resume_s, dry_s)
