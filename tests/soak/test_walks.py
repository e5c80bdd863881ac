"""Thousands of clients that do anything in any order: what `test_invariants` and `test_wire_walks`
do a little of in every run, for as long as it takes to meet what is rare.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.realtime.session.test_invariants import walk
from tests.realtime.wire_walk import WireWalk

MACHINE_WALKS = range(1_000, 6_000)  # beyond the seeds of the short tests
WIRE_WALKS = range(1_000, 3_000)
WIRE_STEPS = 80

pytestmark = pytest.mark.soak


def test_the_machine_is_sound_in_thousands_of_walks() -> None:
    for seed in MACHINE_WALKS:
        try:
            walk(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error


def test_the_wire_is_sound_in_thousands_of_walks() -> None:
    for seed in WIRE_WALKS:
        try:
            client = WireWalk(Random(seed))
            client.run(client.some_names(WIRE_STEPS), settles=seed % 3 != 0)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
