"""Two minutes of `benchmarks.soak`: run it with `pytest -m soak tests/soak`."""

from __future__ import annotations

import pytest

from benchmarks.soak import soak

MINUTES = 2.0
CLIENTS = 20
SAMPLE_S = 10.0


@pytest.mark.soak
def test_nothing_stays_of_visitors_who_are_killed() -> None:
    result = soak(MINUTES, CLIENTS, SAMPLE_S, seed=3)
    assert result.failures == []
    assert result.kills > 0 and result.tally["visits"] > 0
