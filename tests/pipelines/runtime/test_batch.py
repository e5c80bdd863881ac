from __future__ import annotations

import pytest

from pipelines.runtime.batch import Standing, choose, urgency_of
from pipelines.types import Urgency

FIRST, DRY, STEADY, DRAFT = Urgency

DRY_S = 0.25


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        (Standing(FIRST), FIRST),
        (Standing(STEADY), FIRST),  # an owner may not know that nothing was heard yet
        (Standing(FIRST, has_sounded=True, unread_s=0.24), DRY),
        (Standing(FIRST, has_sounded=True, unread_s=0.25), STEADY),
        (Standing(DRY, has_sounded=True, unread_s=0.9), DRY),  # it knows what its listener has
        (Standing(STEADY, has_sounded=True, unread_s=0.0), STEADY),
        (Standing(DRAFT), DRAFT),
        (Standing(DRAFT, has_sounded=True, unread_s=0.0), DRAFT),
    ],
)
def test_the_class_follows_from_what_the_listener_has(
    standing: Standing, expected: Urgency
) -> None:
    assert urgency_of(standing, DRY_S) is expected


@pytest.mark.parametrize("asked", list(Urgency))
@pytest.mark.parametrize("has_sounded", [False, True])
def test_where_outputs_have_no_length_the_owner_alone_decides(
    asked: Urgency, has_sounded: bool
) -> None:
    assert urgency_of(Standing(asked, has_sounded), None) is asked


def test_the_most_urgent_goes_first_then_who_has_least_ahead() -> None:
    standings = [
        Standing(DRAFT),
        Standing(STEADY, has_sounded=True, unread_s=0.6),
        Standing(FIRST, has_sounded=True, unread_s=0.2),
        Standing(STEADY, has_sounded=True, unread_s=0.4),
        Standing(FIRST),
        Standing(FIRST, has_sounded=True, unread_s=0.1),
    ]
    assert choose(standings, DRY_S, None) == [4, 5, 2, 3, 1, 0]
    assert choose(standings, DRY_S, 3) == [4, 5, 2]
    assert choose([], DRY_S, 3) == []


def test_equals_take_turns_under_a_limit() -> None:
    last = [0, 0, 0]
    served = list[int]()
    for step in range(1, 7):
        standings = [Standing(FIRST, has_sounded=True, last_step=number) for number in last]
        (chosen,) = choose(standings, DRY_S, 1)
        last[chosen] = step
        served.append(chosen)
    assert served == [0, 1, 2, 0, 1, 2]
