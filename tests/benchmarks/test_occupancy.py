"""What is told of a GPU's time, from kernels whose times are known."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

DECODER, CODEC = 7, 9  # CUDA streams


def kernel(name: str, begin_ms: float, lasts_ms: float, stream: int) -> dict[str, Any]:
    return {"name": name, "ts": begin_ms * 1000, "dur": lasts_ms * 1000, "args": {"stream": stream}}


def test_shares_of_two_streams_that_overlap() -> None:
    from benchmarks.higgs.occupancy import occupancy

    seen = occupancy(
        [
            kernel("layer", 0, 3, DECODER),
            kernel("draw_codes<33>", 2, 2, DECODER),  # begins early: 0 to 4 is one stretch
            kernel("draw_codes<33>", 5, 1, DECODER),
            kernel("draw_codes<33>", 9, 1, DECODER),
            kernel("gemm", 3, 3, CODEC),
        ]
    )

    assert seen.wall_ms == pytest.approx(10)
    assert seen.decoder_share == pytest.approx(0.6)
    assert seen.codec_share == pytest.approx(0.3)
    assert seen.both_share == pytest.approx(0.2)
    assert seen.neither_share == pytest.approx(0.3)
    assert (seen.steps, seen.step_ms, seen.longest_step_ms) == (3, pytest.approx(3.5), 4)
