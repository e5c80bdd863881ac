"""A server on scripted stages whose recogniser fails; it ends when it is told to."""

from __future__ import annotations

import asyncio
import signal

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.hearing import FakeRecogniser
from pipelines.types import StageError
from tests.live_server import live_server


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    recogniser = FakeRecogniser([StageError("asr_failed", "The scripted ears fail.")])
    async with live_server(FakeCascade(recogniser=recogniser)) as server:
        print(f"ready at {server.http_url}", flush=True)  # noqa: T201
        await stop.wait()


asyncio.run(main())
