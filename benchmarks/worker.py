"""What it costs a stage to run in a worker process: the same scripted voice there and here.

First output: from the opening of a request to its first 40 ms of audio, which the scripted voice
makes at once. Outputs a second: of 40 ms of audio each, as fast as they come. Abort: until the
stage has freed the request. Back: from a kill of the worker to the first output of the next.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from benchmarks import options
from benchmarks.report import print_table, spread, write_json
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.ports import Speaker
from pipelines.runtime.remote_stage import ProcessStage
from pipelines.runtime.worker_options import WorkerOptions
from pipelines.types import SpeakRequest, SpeechDelta

REQUEST = SpeakRequest("bench", "tone")
FACTORY = "pipelines.fakes.speaker:FakeSpeaker"
VOICE: dict[str, object] = {"ms_per_word": 40.0}  # one output per word: a frame of the transport
REQUESTS = 500
OUTPUTS = 5000
STREAMS = 32  # a crowd for one worker
WINDOWS = (2, 8, 32)  # outputs on their way; the default is among them
CRASHES = 5


async def first_outputs(stage: Speaker) -> list[float]:
    return [await first_output(stage) for _ in range(REQUESTS)]


async def first_output(stage: Speaker) -> float:
    """In milliseconds."""
    began_s = time.perf_counter()
    stream = stage.open(REQUEST)
    await stream.push("word ")
    await anext(aiter(stream))
    lasted_s = time.perf_counter() - began_s
    stream.abort()
    return lasted_s * 1000


async def outputs_per_s(stage: Speaker, streams: int) -> float:
    each = OUTPUTS // streams

    async def read() -> None:
        stream = stage.open(REQUEST)
        await stream.push("word " * each)
        await stream.finish()
        outputs: list[SpeechDelta] = [output async for output in stream]
        assert len(outputs) == each

    began_s = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(streams):
            tasks.create_task(read())
    return streams * each / (time.perf_counter() - began_s)


async def abort_latencies(stage: Speaker) -> list[float]:
    """In milliseconds, of requests that are being spoken."""
    latencies: list[float] = []
    for _ in range(REQUESTS):
        stream = stage.open(REQUEST)
        await stream.push("word " * 100)
        await anext(aiter(stream))
        began_s = time.perf_counter()
        stream.abort()
        while stage.active:
            await asyncio.sleep(0)
        latencies.append((time.perf_counter() - began_s) * 1000)
    return latencies


async def ready(stage: Speaker, use: Callable[[Speaker], Awaitable[None]]) -> None:
    await stage.start(lambda line: None)
    try:
        await use(stage)
    finally:
        await stage.close()


async def measure() -> dict[str, object]:
    rows: list[dict[str, object]] = []

    async def compare(stage: Speaker, place: str) -> None:
        await first_output(stage)
        rows.append(
            {
                "place": place,
                "first_output_ms": spread(await first_outputs(stage)),
                "outputs_per_s": await outputs_per_s(stage, 1),
                "outputs_per_s_crowd": await outputs_per_s(stage, STREAMS),
                "abort_ms": spread(await abort_latencies(stage)),
            }
        )

    await ready(FakeSpeaker(ms_per_word=40.0), lambda stage: compare(stage, "here"))
    for window in WINDOWS:
        chosen = replace(WorkerOptions(), output_window=window)
        there: Speaker = ProcessStage("voice", FACTORY, VOICE, chosen)
        place = f"worker, window {window}"
        await ready(there, lambda stage, place=place: compare(stage, place))
    return {"places": rows, **await lives()}


async def lives() -> dict[str, object]:
    """How long a worker takes to start, and to be back after a kill but for the pause before."""
    chosen = replace(WorkerOptions(), first_backoff_s=0.001, longest_backoff_s=0.001)
    stage: ProcessStage[SpeakRequest, str, SpeechDelta] = ProcessStage(
        "voice", FACTORY, VOICE, chosen
    )
    began_s = time.perf_counter()
    await stage.start(lambda line: None)
    start_ms = (time.perf_counter() - began_s) * 1000
    back_ms: list[float] = []
    for _ in range(CRASHES):
        pid = stage.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        began_s = time.perf_counter()
        while stage.pid == pid:
            await asyncio.sleep(0)
        await first_output(stage)
        back_ms.append((time.perf_counter() - began_s) * 1000)
    began_s = time.perf_counter()
    await stage.close()
    return {
        "start_ms": start_ms,
        "back_after_kill_ms": spread(back_ms),
        "close_ms": (time.perf_counter() - began_s) * 1000,
    }


def main() -> None:
    chosen = options.parser(__doc__).parse_args()
    figures = asyncio.run(measure())
    places = figures["places"]
    assert isinstance(places, list)
    print_table(
        ("place", "first ms", "p95", "outputs/s", f"with {STREAMS}", "abort ms", "p95"),
        [
            (
                row["place"],
                f"{row['first_output_ms']['median']:.2f}",
                f"{row['first_output_ms']['p95']:.2f}",
                f"{row['outputs_per_s']:.0f}",
                f"{row['outputs_per_s_crowd']:.0f}",
                f"{row['abort_ms']['median']:.2f}",
                f"{row['abort_ms']['p95']:.2f}",
            )
            for row in places
        ],
    )
    back = figures["back_after_kill_ms"]
    assert isinstance(back, dict)
    print(
        f"\na worker starts in {figures['start_ms']:.0f} ms, is back {back['median']:.0f} ms after "
        f"a kill, and closes in {figures['close_ms']:.0f} ms"
    )
    write_json("worker", figures, chosen.json)


if __name__ == "__main__":
    main()
