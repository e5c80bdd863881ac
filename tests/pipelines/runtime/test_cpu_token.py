from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.ticket import Aborted, Ticket
from pipelines.types import Urgency

WAIT_S = 5.0


class Worker(threading.Thread):
    """Takes the token, notes its name, and lets go when told."""

    def __init__(self, token: CpuToken, ticket: Ticket, log: list[str]) -> None:
        super().__init__(daemon=True)
        self.token, self.ticket, self.log = token, ticket, log
        self.let_go = threading.Event()
        self.holds = threading.Event()
        self.raised: BaseException | None = None
        waiting = token.waiting
        self.start()
        wait_until(lambda: self.holds.is_set() or token.waiting > waiting)

    def run(self) -> None:
        try:
            with self.token.hold(self.ticket):
                self.log.append(self.ticket.request_id)
                self.holds.set()
                assert self.let_go.wait(WAIT_S)
        except BaseException as error:
            self.raised = error

    def end(self) -> None:
        self.let_go.set()
        self.join(WAIT_S)
        assert not self.is_alive()


def wait_until(condition: Callable[[], bool]) -> None:
    timer = threading.Event()
    for _ in range(5000):
        if condition():
            return
        timer.wait(0.001)
    raise AssertionError("the condition never came true")


def ticket(name: str, urgency: Urgency = Urgency.STEADY) -> Ticket:
    return Ticket(name, urgency)


def test_the_most_urgent_goes_first_then_the_first_to_come() -> None:
    token, log = CpuToken(), list[str]()
    first = Worker(token, ticket("holder"), log)
    waiters = [
        Worker(token, ticket(name, urgency), log)
        for name, urgency in [
            ("draft", Urgency.DRAFT),
            ("steady 1", Urgency.STEADY),
            ("steady 2", Urgency.STEADY),
            ("first audio", Urgency.FIRST_AUDIO),
        ]
    ]
    first.end()
    for worker in [waiters[3], waiters[1], waiters[2], waiters[0]]:
        assert worker.holds.wait(WAIT_S)
        worker.end()
    assert log == ["holder", "first audio", "steady 1", "steady 2", "draft"]


def test_a_hurried_waiter_overtakes() -> None:
    token, log = CpuToken(), list[str]()
    first = Worker(token, ticket("holder"), log)
    steady = Worker(token, ticket("steady"), log)
    draft = Worker(token, ticket("draft", Urgency.DRAFT), log)
    draft.ticket.hurry(Urgency.FIRST_AUDIO)
    first.end()
    assert draft.holds.wait(WAIT_S)
    draft.end()
    steady.end()
    assert log == ["holder", "draft", "steady"]


def test_slots_let_as_many_in() -> None:
    token, log = CpuToken(slots=2), list[str]()
    workers = [Worker(token, ticket(name), log) for name in "abc"]
    assert log == ["a", "b"] and token.waiting == 1
    workers[1].end()
    assert workers[2].holds.wait(WAIT_S)
    workers[0].end()
    workers[2].end()


def test_an_abort_ends_the_wait_and_leaves_the_token_alone() -> None:
    token, log = CpuToken(), list[str]()
    holder = Worker(token, ticket("holder"), log)
    waiter = Worker(token, ticket("waiter"), log)
    waiter.ticket.abort()
    waiter.join(WAIT_S)
    assert isinstance(waiter.raised, Aborted)
    assert token.waiting == 0
    holder.end()
    with token.hold(ticket("next")):
        pass


def test_a_dead_ticket_gets_no_token() -> None:
    token, dead = CpuToken(), ticket("dead")
    dead.abort()
    with pytest.raises(Aborted), token.hold(dead):
        raise AssertionError("held")
    with token.hold(ticket("next")):
        pass


@pytest.mark.parametrize("urgency", [Urgency.FIRST_AUDIO, Urgency.STEADY])
def test_giving_way_lets_the_more_urgent_and_equals_go(urgency: Urgency) -> None:
    token, log = CpuToken(), list[str]()
    mine = ticket("mine")
    with token.hold(mine):
        other = Worker(token, ticket("other", urgency), log)
        assert not other.holds.is_set()
        other.let_go.set()
        token.give_way(mine)
        assert other.holds.is_set()
        log.append("mine")
    other.end()
    assert log == ["other", "mine"]


def test_giving_way_does_not_let_the_less_urgent_go() -> None:
    token, log = CpuToken(), list[str]()
    mine = ticket("mine")
    with token.hold(mine):
        other = Worker(token, ticket("other", Urgency.DRAFT), log)
        token.give_way(mine)
        assert log == []
    other.end()


def test_an_abort_while_giving_way_raises_and_does_not_release_twice() -> None:
    token, log = CpuToken(), list[str]()
    mine = ticket("mine", Urgency.DRAFT)
    caught: list[BaseException] = []
    began = threading.Event()
    go_on = threading.Event()

    def run() -> None:
        try:
            with token.hold(mine):
                began.set()
                assert go_on.wait(WAIT_S)
                token.give_way(mine)
        except Aborted as error:
            caught.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert began.wait(WAIT_S)
    other = Worker(token, ticket("other"), log)
    go_on.set()
    assert other.holds.wait(WAIT_S)
    mine.abort()
    thread.join(WAIT_S)
    assert len(caught) == 1
    # One slot, still held by the other: a third has to wait for it.
    third = Worker(token, ticket("third"), log)
    assert not third.holds.is_set()
    other.end()
    assert third.holds.wait(WAIT_S)
    third.end()


def test_giving_way_without_the_token_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="without the token"):
        CpuToken().give_way(ticket("stray"))


def test_callbacks_of_an_abort_run_once_and_can_be_taken_back() -> None:
    calls: list[str] = []
    mine = ticket("mine")
    mine.on_abort(lambda: calls.append("kept"))
    forget = mine.on_abort(lambda: calls.append("forgotten"))
    forget()
    mine.abort()
    mine.abort()
    mine.on_abort(lambda: calls.append("late"))
    assert calls == ["kept", "late"]
