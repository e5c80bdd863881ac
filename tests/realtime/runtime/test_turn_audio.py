"""A turn's audio is handed on while it is heard: in order, whole, and up to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest

from pipelines.types import Samples
from realtime.runtime.turn_audio import TurnAudio


class Sound:
    """Counts upwards; `position` is how far it has been heard."""

    def __init__(self, start: int = 0) -> None:
        self.position = 0
        self.turn = TurnAudio(self.read, lambda: self.position, start)

    def read(self, start: int, end: int) -> Samples:
        assert end <= self.position
        return np.arange(start, end, dtype=np.float32)

    def hear(self, count: int) -> None:
        self.position += count
        self.turn.notice()


async def gather(pieces: AsyncIterator[Samples]) -> Samples:
    return np.concatenate([np.zeros(0, np.float32), *[piece async for piece in pieces]])


@pytest.mark.parametrize("start", [0, 3000])
@pytest.mark.parametrize("end", [20_000, 19_990, 3000])
def test_what_was_handed_on_is_the_turn(start: int, end: int) -> None:
    async def main() -> None:
        sound = Sound(start)
        gathering = asyncio.create_task(gather(sound.turn.pieces()))
        while sound.position < 20_000:
            sound.hear(500)
            if sound.position < end - 4000:
                await asyncio.sleep(0)
        sound.turn.finish(end)
        heard = await gathering
        # What was handed on before the end was known cannot be taken back.
        assert np.array_equal(heard, np.arange(start, max(start + len(heard), end)))

    asyncio.run(main())


def test_nothing_is_handed_on_for_every_frame() -> None:
    async def main() -> None:
        sound = Sound()
        pieces = sound.turn.pieces()
        waiting = asyncio.ensure_future(anext(pieces))
        for _ in range(3):
            sound.hear(512)
            await asyncio.sleep(0)
        assert not waiting.done()
        sound.hear(512)
        assert len(await waiting) == 2048
        await pieces.aclose()  # pyright: ignore[reportAttributeAccessIssue]

    asyncio.run(main())


def test_a_turn_that_ends_before_it_began_is_empty() -> None:
    async def main() -> None:
        sound = Sound(start=1000)
        sound.turn.finish(500)
        assert len(await gather(sound.turn.pieces())) == 0

    asyncio.run(main())
