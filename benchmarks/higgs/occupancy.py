"""What the GPU does while replies are spoken: `python -m benchmarks.higgs.occupancy --streams 16`.

The kernels of one load are recorded with the times at which they ran. The decoder and the codec
have a CUDA stream each, so it is told how long either works, how long both do, and how long neither
does, which is when the GPU waits for the host. Recording costs some time of its own.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch.profiler import ProfilerActivity, profile

from benchmarks.higgs.stage import Load, Stage, load, make_stage, make_voice
from benchmarks.options import parser
from benchmarks.report import percentile, print_table, write_json
from pipelines.higgs.assembly import warm_up

KERNELS_SHOWN = 14
DRAWS = "draw_codes"  # a kernel that runs once in a step

Span = tuple[float, float]  # us, begin and end


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Shares are of the time from the first kernel to the last."""

    wall_ms: float
    decoder_share: float
    codec_share: float
    both_share: float
    neither_share: float
    steps: int
    step_ms: float  # median, from one drawing to the next
    step_p95_ms: float
    longest_step_ms: float


def merged(spans: Sequence[Span]) -> list[Span]:
    """The same times without overlaps, in order."""
    whole: list[Span] = []
    for begin, end in sorted(spans):
        if whole and begin <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((begin, end))
    return whole


def covered(spans: Sequence[Span]) -> float:
    return sum(end - begin for begin, end in merged(spans))


def occupancy(kernels: Sequence[dict[str, Any]]) -> Occupancy:
    """kernels: trace events with `name`, `ts`, `dur` in us and `args.stream`."""
    by_stream: dict[int, list[Span]] = defaultdict(list)
    draws: list[tuple[float, int]] = []
    for kernel in kernels:
        begin, stream = kernel["ts"], kernel["args"]["stream"]
        by_stream[stream].append((begin, begin + kernel["dur"]))
        if DRAWS in kernel["name"]:
            draws.append((begin, stream))
    decoder_streams = {stream for _, stream in draws}
    decoder = [span for number in decoder_streams for span in by_stream[number]]
    codec = [
        span for number, of in by_stream.items() if number not in decoder_streams for span in of
    ]
    every = [*decoder, *codec]
    wall = max(end for _, end in every) - min(begin for begin, _ in every)
    whole, of_decoder, of_codec = covered(every), covered(decoder), covered(codec)
    times = sorted(begin for begin, _ in draws)
    gaps = [(after - before) / 1000 for before, after in zip(times, times[1:], strict=False)]
    return Occupancy(
        wall_ms=wall / 1000,
        decoder_share=of_decoder / wall,
        codec_share=of_codec / wall,
        both_share=(of_decoder + of_codec - whole) / wall,
        neither_share=1 - whole / wall,
        steps=len(times),
        step_ms=percentile(gaps, 50),
        step_p95_ms=percentile(gaps, 95),
        longest_step_ms=max(gaps),
    )


def by_name(kernels: Sequence[dict[str, Any]]) -> list[tuple[str, int, float]]:
    """Name, calls and ms of the kernels that take longest; one that starts early, while another
    ends, counts from its start."""
    times: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for kernel in kernels:
        name = kernel["name"][:80]
        times[name] += kernel["dur"] / 1000
        calls[name] += 1
    longest = sorted(times, key=lambda name: -times[name])[:KERNELS_SHOWN]
    return [(name, calls[name], times[name]) for name in longest]


async def recorded(stage: Stage, streams: int, rounds: int) -> tuple[Load, list[dict[str, Any]]]:
    chance = random.Random(1)
    await load(stage, streams, streams, chance)
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        loaded = await load(stage, streams, streams * rounds, chance)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    return loaded, [event for event in events if event.get("cat") == "kernel"]


async def measure(streams: int, rounds: int, device: str) -> dict[str, Any]:
    voice = make_voice(device, streams, is_tiny=False, is_native=True)
    warm_up(voice, [voice.preamble()])
    stage = make_stage(voice)
    await stage.start(print)
    try:
        loaded, kernels = await recorded(stage, streams, rounds)
    finally:
        await stage.close()
    seen = occupancy(kernels)
    print(f"{streams} streams: {loaded.audio_s_per_s:.1f} audio s/s while recorded")
    print_table(("of the load", "value"), [(name, value) for name, value in asdict(seen).items()])
    print_table(("kernel", "calls", "ms"), by_name(kernels))
    return {"load": asdict(loaded), "occupancy": asdict(seen), "kernels": by_name(kernels)}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--device", default="cuda:0")
    options.add_argument("--streams", type=int, nargs="+", default=[16])
    options.add_argument("--rounds", type=int, default=2, help="replies for each stream")
    given = options.parse_args()
    seen = {
        streams: asyncio.run(measure(streams, given.rounds, given.device))
        for streams in given.streams
    }
    write_json("higgs_occupancy", seen, given.json)


if __name__ == "__main__":
    main()
