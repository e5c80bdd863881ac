"""CUDA graphs of a step, one for each number of rows that is worth having.

A step runs in the smallest graph that holds its rows. Launching a graph costs the host some tens of
microseconds, where its several hundred kernels would cost milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# Close together where a step's time follows its rows; the last ones are for prompts.
BUCKETS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 128, 256)

_WARM_UPS = 2  # kernels are compiled and cuBLAS makes its choices before anything is captured


def buckets(row_limit: int) -> tuple[int, ...]:
    """Ascending; the last one holds `row_limit` rows."""
    below = tuple(bucket for bucket in BUCKETS if bucket < row_limit)
    reaching = next((bucket for bucket in BUCKETS if bucket >= row_limit), row_limit)
    return (*below, reaching)


def capture(
    enqueue: Callable[[], None], stream: torch.cuda.Stream, pool: Any
) -> torch.cuda.CUDAGraph:
    """The graph of what `enqueue` puts on `stream`, which is idle; it is also run."""
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UPS):
            enqueue()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        # Other stages of the process may be loading on the same device, in their own threads.
        with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            enqueue()
    return graph
