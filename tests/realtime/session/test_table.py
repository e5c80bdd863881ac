"""The tables as data: whole, well-formed, drawable."""

from __future__ import annotations

from enum import Enum
from itertools import product

import pytest

from realtime.session.drafting import DraftingRegion
from realtime.session.life import LifecycleRegion
from realtime.session.listening import ListeningRegion
from realtime.session.region import Region
from realtime.session.speaking import SpeakingRegion
from realtime.session.states import Drafting, Lifecycle, Listening, Speaking
from realtime.session.table import (
    DRAFTING,
    LIFECYCLE,
    LISTENING,
    SPEAKING,
    Cell,
    Guess,
    Hear,
    Ignore,
    Live,
    Move,
    Reject,
    Say,
    draw,
)

Table = dict[tuple[Enum, Enum], Cell]
TABLES = [
    pytest.param(LISTENING, Listening, Hear, ListeningRegion, id="listening"),
    pytest.param(SPEAKING, Speaking, Say, SpeakingRegion, id="speaking"),
    pytest.param(DRAFTING, Drafting, Guess, DraftingRegion, id="drafting"),
    pytest.param(LIFECYCLE, Lifecycle, Live, LifecycleRegion, id="lifecycle"),
]


@pytest.mark.parametrize(("table", "states", "signals", "region"), TABLES)
def test_every_state_says_what_every_signal_does(
    table: Table, states: type[Enum], signals: type[Enum], region: type[Region[Enum, Enum]]
) -> None:
    assert set(table) == set(product(states, signals))


@pytest.mark.parametrize(("table", "states", "signals", "region"), TABLES)
def test_every_move_has_an_action_and_leads_to_states_of_its_region(
    table: Table, states: type[Enum], signals: type[Enum], region: type[Region[Enum, Enum]]
) -> None:
    for key, cell in table.items():
        match cell:
            case Move(action, to):
                assert callable(getattr(region, action)), key
                assert to and all(isinstance(state, states) for state in to), key
                assert len(set(to)) == len(to), key
            case Ignore(reason):
                assert reason, key
            case Reject(code):
                assert code, key


@pytest.mark.parametrize(("table", "states", "signals", "region"), TABLES)
def test_the_diagram_shows_every_change_of_state(
    table: Table, states: type[Enum], signals: type[Enum], region: type[Region[Enum, Enum]]
) -> None:
    drawing = draw(table)
    assert drawing.startswith("stateDiagram-v2\n")
    arrows = {line.strip().partition(":")[0] for line in drawing.splitlines()[1:]}
    assert arrows == {
        f"{state.name} --> {target.name}"
        for (state, _), cell in table.items()
        if isinstance(cell, Move)
        for target in cell.to
        if target is not state
    }


def test_only_speaking_refuses_and_only_what_a_client_asked_for() -> None:
    for table in (LISTENING, DRAFTING, LIFECYCLE):
        assert not [key for key, cell in table.items() if isinstance(cell, Reject)]
    refused = {signal for (_, signal), cell in SPEAKING.items() if isinstance(cell, Reject)}
    assert refused == {Say.CREATE, Say.CANCEL}
