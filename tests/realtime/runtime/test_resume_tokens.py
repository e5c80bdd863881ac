"""The tokens with which lost clients find their sessions: whom they let in, and how often."""

from __future__ import annotations

import pytest

from realtime.runtime.parking import Parking, SessionOver
from realtime.runtime.transport import Transport


class Session:
    """Something to come back to."""

    async def attach(self, transport: Transport, wants_details: bool = False) -> None:
        pass


def test_a_token_is_good_for_one_claim() -> None:
    parking, session = Parking(), Session()
    token = parking.issue(session)
    assert len(token) >= 43, "256 bits"
    claim = parking.claim(token)
    assert claim.session is session
    with pytest.raises(SessionOver, match="resume=new"):
        parking.claim(token)


def test_an_answer_that_was_lost_costs_nobody_their_session() -> None:
    now_s = 100.0
    parking, session = Parking(lambda: now_s), Session()
    old = parking.issue(session)
    parking.claim(old)
    new = parking.issue(session)  # in an answer that never arrives
    with pytest.raises(SessionOver):
        parking.claim(old)  # another client, in the same moment
    now_s += 3
    assert parking.claim(old).session is session
    now_s += 3
    parking.confirm(session)
    with pytest.raises(SessionOver):
        parking.claim(old)
    assert parking.claim(new).session is session


@pytest.mark.parametrize("wrong", ["", "new", "x" * 43, "None"])
def test_a_wrong_token_finds_nothing(wrong: str) -> None:
    parking = Parking()
    parking.issue(Session())
    with pytest.raises(SessionOver):
        parking.claim(wrong)


def test_a_new_token_replaces_the_old_one() -> None:
    parking, session = Parking(), Session()
    old, new = parking.issue(session), parking.issue(session)
    assert old != new and len(parking) == 1
    with pytest.raises(SessionOver):
        parking.claim(old)
    assert parking.claim(new).session is session


def test_a_client_that_was_not_let_in_may_try_again() -> None:
    parking, session = Parking(), Session()
    token = parking.issue(session)
    parking.give_back(parking.claim(token))
    assert parking.claim(token).session is session


@pytest.mark.parametrize("ends", ["replaced", "over"])
def test_a_claim_given_back_too_late_revives_nothing(ends: str) -> None:
    parking, session = Parking(), Session()
    claim = parking.claim(parking.issue(session))
    if ends == "replaced":
        parking.issue(session)
    else:
        parking.forget(session)
    parking.give_back(claim)
    with pytest.raises(SessionOver):
        parking.claim(claim.token)
