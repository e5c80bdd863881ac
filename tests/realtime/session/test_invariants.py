"""Anything in any order: the machine's invariants hold, its table is true, and replays are equal.

`Script` and `WireOrder` check what a client may see, `soundness` what lies beneath, after every
step. Every run of these tests is the same run: seeds are fixed and hypothesis is derandomised.
"""

from __future__ import annotations

from enum import Enum
from itertools import chain
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.session import events as ev
from realtime.session.machine import Machine
from realtime.session.region import Region
from realtime.session.states import Lifecycle
from realtime.session.table import Ignore
from tests.realtime.session.moments import all_pairs, odd_moments
from tests.realtime.session.script import Script
from tests.realtime.session.walk import Walk

WALKS = 150
STEPS = 300


def replay(script: Script) -> None:
    """A second machine gives the same effects for the same events."""
    machine = Machine()
    for event, now_ms, effects in script.log:
        assert machine.step(event, now_ms) == effects


def regions(machine: Machine) -> tuple[Region[Any, Any], ...]:
    return machine.life, machine.listening, machine.speaking, machine.drafting


def walk(seed: int) -> Walk:
    script = Walk(Random(seed))
    script.go(STEPS)
    script.settle()
    replay(script)
    return script


@pytest.fixture(scope="module")
def visited() -> list[set[tuple[Enum, Enum]]]:
    """By region: the cells of the table that walks and pairs of events came to."""
    cells: list[set[tuple[Enum, Enum]]] = [set(), set(), set(), set()]
    walks = (walk(seed) for seed in range(WALKS))
    for script in chain(walks, (play() for play in all_pairs()), odd_moments()):
        for seen, region in zip(cells, regions(script.machine), strict=True):
            seen |= region.visited
    return cells


def test_the_table_is_true(visited: list[set[tuple[Enum, Enum]]]) -> None:
    """What it calls impossible never happens, and everything else does."""
    for seen, region in zip(visited, regions(Machine()), strict=True):
        impossible = {
            key for key, cell in region.table.items() if isinstance(cell, Ignore) and cell.never
        }
        assert seen & impossible == set()
        assert set(region.table) - impossible - seen == set()


ACTIONS = [action.__name__ for action in Walk(Random(0)).actions]


@settings(max_examples=250, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 2**16), names=st.lists(st.sampled_from(ACTIONS), max_size=80))
def test_no_order_of_events_breaks_an_invariant(seed: int, names: list[str]) -> None:
    script = Walk(Random(seed))
    for name in names:
        if script.machine.lifecycle is not Lifecycle.CLOSED:
            getattr(script, name)()
    script.settle()
    replay(script)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 2**16), late_ms=st.sampled_from([1.0, 40.0, 700.0, 20_000.0]))
def test_a_clock_that_ticks_late_or_jumps_back_breaks_nothing(seed: int, late_ms: float) -> None:
    """A loaded machine steps deadlines late; a clock that goes back is taken to stand still."""
    script = Walk(Random(seed))
    machine, dice = script.machine, Random(seed)
    script.go(40)
    if machine.lifecycle is Lifecycle.CLOSED:
        return
    script.now_ms += late_ms
    for now_ms in (script.now_ms, script.now_ms - 500, script.now_ms):
        for effect in machine.step(ev.Tick(), now_ms):
            script._perform(effect)
    script.after_step()
    script.log.clear()
    if machine.lifecycle is not Lifecycle.CLOSED:
        script.go(dice.randint(1, 40))
    if machine.lifecycle is not Lifecycle.CLOSED:
        script.settle()
