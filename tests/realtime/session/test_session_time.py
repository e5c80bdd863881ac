"""A session's time runs out: whatever is under way ends, its client is told, nothing is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.notices import ErrorRaised, ResponseCreated, ResponseDone
from realtime.session.settings import SemanticVad, SessionSettings
from realtime.session.states import Lifecycle
from tests.realtime.session.script import Script
from tests.realtime.session.soundness import check
from tests.realtime.session.test_lifecycle import MOMENTS

LASTS_MS = 120_000.0
OPENED = ev.Opened(
    7, SessionSettings(turn_detection=SemanticVad()), "browser", True, 0, lasts_ms=LASTS_MS
)
WHY = "Your session hit the maximum duration of 2 minutes."


def opened() -> Script:
    script = Script(drafts=True, judges=None, is_open=False)
    script.step(OPENED)
    return script


def until_the_end(script: Script, begun_ms: float) -> None:
    script.wait(begun_ms + LASTS_MS - script.now_ms)


@pytest.mark.parametrize("moment", [lambda _: None, *MOMENTS])
def test_the_client_is_told_and_everything_ends(moment: Callable[[Script], None]) -> None:
    script = opened()
    begun_ms = script.now_ms
    script.wait(LASTS_MS - 10_000)
    moment(script)
    script.after_step = lambda: check(script)
    assert script.machine.lifecycle is Lifecycle.LIVE
    until_the_end(script, begun_ms)
    assert script.machine.lifecycle is Lifecycle.CLOSED
    assert script.effects[-1] == fx.CloseTransport(1001, WHY)
    assert script.notices[-1] == ErrorRaised("invalid_request_error", "session_expired", WHY)
    assert len(script.told(ResponseDone)) == len(script.told(ResponseCreated))
    assert script.machine.next_deadline_ms() is None
    assert not script.works and not script.kept


def test_it_ends_at_its_time_and_not_before() -> None:
    script = opened()
    script.wait(LASTS_MS - 1)
    assert script.machine.lifecycle is Lifecycle.LIVE
    script.wait(1)
    assert script.machine.lifecycle is Lifecycle.CLOSED


def test_a_connection_lost_for_a_while_gives_no_more_time() -> None:
    script = opened()
    begun_ms = script.now_ms
    script.wait(LASTS_MS - 10_000)
    script.step(ev.Disconnected(resumable=True))
    script.wait(5000)
    script.step(ev.Reconnected())
    assert script.machine.lifecycle is Lifecycle.LIVE
    until_the_end(script, begun_ms)
    assert script.notices[-1] == ErrorRaised("invalid_request_error", "session_expired", WHY)


def test_a_session_whose_client_is_away_ends_without_words() -> None:
    script = opened()
    begun_ms = script.now_ms
    script.wait(LASTS_MS - 1000)
    script.step(ev.Disconnected(resumable=True))
    until_the_end(script, begun_ms)
    assert script.machine.lifecycle is Lifecycle.CLOSED
    assert not script.told(ErrorRaised)


def test_a_session_without_an_end_goes_on() -> None:
    script = Script()
    script.wait(30 * 24 * 3600 * 1000)
    assert script.machine.lifecycle is Lifecycle.LIVE
