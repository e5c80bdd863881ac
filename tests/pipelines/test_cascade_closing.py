"""Stages close together, whatever becomes of one of them; and a close can be cut short."""

from __future__ import annotations

import asyncio

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.virtual_time import run_virtual


class Slow:
    """Wraps a stage whose close takes long, unless it is killed; or fails."""

    def __init__(self, stage: object, lasts_s: float, fails: bool = False) -> None:
        self._stage = stage
        self._lasts_s, self._fails = lasts_s, fails
        self._killed = asyncio.Event()
        self.is_closed = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._stage, name)

    async def close(self) -> None:
        try:
            async with asyncio.timeout(self._lasts_s):
                await self._killed.wait()
        except TimeoutError:
            pass
        await self._stage.close()  # type: ignore[attr-defined]
        if self._fails:
            raise OSError("it would not close")
        self.is_closed = True

    def kill(self) -> None:
        self._killed.set()


async def slow_cascade(fails: bool = False) -> tuple[FakeCascade, Slow, Slow]:
    cascade = FakeCascade()
    writer, speaker = Slow(cascade.writer, 50), Slow(cascade.speaker, 80, fails)
    cascade._writer, cascade._speaker = writer, speaker  # type: ignore[assignment]
    await cascade.start(lambda line: None)
    return cascade, writer, speaker


def test_the_slowest_stage_is_all_that_a_close_waits_for() -> None:
    async def main() -> None:
        cascade, writer, speaker = await slow_cascade()
        await cascade.close()
        assert asyncio.get_running_loop().time() == 80
        assert writer.is_closed and speaker.is_closed

    run_virtual(main())


def test_a_close_can_be_cut_short() -> None:
    async def main() -> None:
        cascade, writer, speaker = await slow_cascade()
        asyncio.get_running_loop().call_later(3, cascade.kill)
        await cascade.close()
        assert asyncio.get_running_loop().time() == 3
        assert writer.is_closed and speaker.is_closed

    run_virtual(main())


def test_a_stage_that_fails_to_close_keeps_none_from_closing() -> None:
    async def main() -> None:
        cascade, writer, _ = await slow_cascade(fails=True)
        await cascade.close()
        assert writer.is_closed

    run_virtual(main())
