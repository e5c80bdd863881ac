"""Any client over the wire: its answers are in order and exact, and nothing of it is left behind.

Every run is the same run: hypothesis is derandomised and each seed decides everything.
"""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.realtime.wire_walk import WireWalk

ACTIONS = [action.__name__ for action in WireWalk(Random(0)).actions]
STEPS = 30


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 2**16), names=st.lists(st.sampled_from(ACTIONS), max_size=40))
def test_no_order_of_events_breaks_the_wire(seed: int, names: list[str]) -> None:
    WireWalk(Random(seed)).run(names, settles=True)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 2**16), steps=st.integers(0, STEPS))
def test_a_client_that_leaves_at_any_moment_leaves_nothing_behind(seed: int, steps: int) -> None:
    walk = WireWalk(Random(seed))
    walk.run(walk.some_names(steps), settles=False)
