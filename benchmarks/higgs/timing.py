"""How long a GPU takes."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

_BANDWIDTH_BYTES = 2 << 30  # many times the largest L2 cache


def gpu_ms(run: Callable[[], object], *, repeats: int = 20, rounds: int = 5) -> float:
    """The median over `rounds` of the mean of `repeats` runs on the current stream, after one."""
    run()
    times: list[float] = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(repeats):
            run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / repeats)
    return statistics.median(times)


def read_bandwidth() -> float:
    """Bytes a second at which the device reads its memory: the pace of a maximum over 2 GiB."""
    values = torch.randint(0, 1 << 30, (_BANDWIDTH_BYTES // 4,), dtype=torch.int32, device="cuda")
    return _BANDWIDTH_BYTES / (gpu_ms(values.max, repeats=10) * 1e-3)
