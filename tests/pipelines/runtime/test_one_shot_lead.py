"""A voice that works call by call stops when its listener has enough."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.lead import Lead
from pipelines.runtime.one_shot import OneShotStage
from pipelines.runtime.ticket import Ticket
from pipelines.types import SpeakRequest
from tests.pipelines.waiting import check, until

LEAD: Lead[float] = Lead(float, limit_s=1.0, resume_s=0.5)


def test_it_runs_again_when_half_is_left() -> None:
    made: list[float] = []

    def speak(_: object, request: SpeakRequest, seconds: float, ticket: Ticket) -> Iterator[float]:
        for _ in range(4):
            made.append(seconds)
            yield seconds

    async def main() -> None:
        stage = OneShotStage[SpeakRequest, float, float](
            "tts", lambda progress: object(), speak, CpuToken(), lead=LEAD
        )
        await stage.start(lambda line: None)
        try:
            stream = stage.open(SpeakRequest("r", "voice"))
            for _ in range(5):
                await stream.push(0.4)
            await stream.finish()
            await until(lambda: len(made) == 3)
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(made) == 3, "1.2 s wait"
            await anext(stream)
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(made) == 3, "0.8 s wait"
            await anext(stream)
            await until(lambda: len(made) == 5)
            assert len([seconds async for seconds in stream]) == 18
            assert stage.stats.active == 0 and stage.capacity is None
        finally:
            await stage.close()

    check(main)
