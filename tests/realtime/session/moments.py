"""Every state of the session, reached on purpose, and everything that can happen in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.settings import SemanticVad, ServerVad, SessionSettings
from realtime.session.states import Lifecycle, Listening, Speaking
from tests.realtime.session.script import Script
from tests.realtime.session.soundness import check

OPENED = ev.Opened(1, SessionSettings(), "browser", False, 0)


def reach_speaking(state: Speaking, is_behind: bool) -> Script:
    """`is_behind`: an earlier reply still sounds. A turn of the user waits for its text."""
    script = Script(ServerVad(interrupt_response=False), hears=None)
    script.ask()
    script.update(turn_detection=ServerVad())
    if is_behind:
        script.create()
        script.answer("Before that.", 1000)
    if state is Speaking.IDLE:
        return script
    script.create()
    if state in (Speaking.SPEAKING, Speaking.HELD):
        script.write("It is noon.")
        script.speak(480)
    if state in (Speaking.TAIL, Speaking.HELD_TAIL):
        script.answer("It is noon.", 500 if is_behind else 900)
        if is_behind:
            script.wait(600)
    if state in (Speaking.HELD, Speaking.HELD_TAIL):
        script.say(32)
    assert script.speaking is state
    return script


def reach_murmur() -> Script:
    """A long reply that has been heard for a while, and a short sound over it."""
    script = Script(SemanticVad(), hears=None, judges=None, drafts=True, lead_ms=200)
    script.create()
    script.write("Once upon a time there was a ship. ")
    script.speak(9000)
    script.wait(1000)
    script.say(256)
    script.silence(64)
    assert script.hearing is Listening.MURMUR
    return script


def reach_listening(state: Listening, _: bool) -> Script:
    if state is Listening.MURMUR:
        return reach_murmur()
    script = Script(SemanticVad(), hears=None, judges=None, drafts=True)
    if state is Listening.ONSET_QUIET:
        script.say(32)
    elif state is not Listening.QUIET:
        script.say(640)
    if state in (Listening.PAUSE, Listening.ONSET_PAUSE):
        script.silence(64)
        script.hear("What time is it?")
        script.silence(192)
    if state is Listening.ONSET_PAUSE:
        script.say(32)
    assert script.hearing is state
    return script


def reach_life(state: Lifecycle, _: bool) -> Script:
    script = Script(is_open=state is not Lifecycle.OPENING)
    if state is Lifecycle.PARKED:
        script.step(ev.Disconnected(resumable=True))
    if state is Lifecycle.DRAINING:
        script.create()
        script.step(ev.ShutDown(10_000))
    if state is Lifecycle.CLOSED:
        script.step(ev.Disconnected())
    assert script.machine.lifecycle is state
    return script


def _hear(script: Script) -> None:
    if any(isinstance(work, fx.Recognise) for work in script.works.values()):
        script.hear("So it is")


def _glimpse(script: Script) -> None:
    if script.live(fx.Listen):
        script.glimpse("No, wait a moment")


def _judge(script: Script) -> None:
    if script.live(fx.AskJudge):
        script.verdict(0.9)


def _with_reply(act: Callable[[Script], None]) -> Callable[[Script], None]:
    def act_if_there_is_one(script: Script) -> None:
        if script.live(fx.StartReply):
            act(script)

    return act_if_there_is_one


def _speak(script: Script) -> None:
    script.write("Well then.")
    script.speak(500)


def _trickle(script: Script) -> None:
    """Frames too slow to decide anything and too fast for a gap, then quiet."""
    for _ in range(3):
        script.wait(880)
        script.frame(0.4)
    script.silence(128)


EVENTS: dict[str, Callable[[Script], object]] = {
    "the text of a turn": _hear,
    "some words": _glimpse,
    "a verdict": _judge,
    "sound of the reply": _with_reply(_speak),
    "a call": _with_reply(lambda script: script.call("look", "{}")),
    "the end of the reply": _with_reply(lambda script: script.finish()),
    "the failure of the reply": _with_reply(lambda script: script.fail()),
    "create": lambda script: script.create(),
    "cancel": lambda script: script.cancel(),
    "commit": lambda script: script.commit(),
    "clear": lambda script: script.clear(),
    "typed text": lambda script: script.type("Hello"),
    "push to talk": lambda script: script.update(turn_detection=None),
    "another detector": lambda script: script.update(turn_detection=ServerVad()),
    "no interruptions": lambda script: script.update(
        turn_detection=ServerVad(interrupt_response=False)
    ),
    "an onset": lambda script: script.say(32),
    "speech": lambda script: script.say(160),
    "a click": lambda script: script.click(),
    "silence": lambda script: script.silence(640),
    "a trickle": _trickle,
    "a second": lambda script: script.wait(1100),
    "a minute": lambda script: script.wait(61_000),
    "loss": lambda script: script.step(ev.Disconnected(resumable=True)),
    "leaving": lambda script: script.step(ev.Disconnected()),
    "return": lambda script: script.step(ev.Reconnected()),
    "shutdown": lambda script: script.step(ev.ShutDown(10_000)),
    "opening": lambda script: script.step(OPENED),
}

REACH = [
    *((reach_speaking, state, is_behind) for state in Speaking for is_behind in (False, True)),
    *((reach_listening, state, False) for state in Listening),
    *((reach_life, state, False) for state in Lifecycle),
]


def all_pairs() -> Iterator[Callable[[], Script]]:
    """Every two events in every state; each one a script that is checked at every step."""
    for (reach, state, is_behind), first, second in product(REACH, EVENTS, EVENTS):

        def play(
            reach: Callable[..., Script] = reach,
            state: object = state,
            is_behind: bool = is_behind,
            names: tuple[str, str] = (first, second),
        ) -> Script:
            script = reach(state, is_behind)
            script.after_step = lambda: check(script)
            for name in names:
                EVENTS[name](script)
            return script

        yield play


def odd_moments() -> Iterator[Script]:
    """What takes more than two events."""
    monologue = Script()
    monologue.say(30_000)
    yield monologue
    switched_on = reach_speaking(Speaking.TAIL, is_behind=False)
    for name in ("no interruptions", "an onset", "another detector", "speech"):
        EVENTS[name](switched_on)
    yield switched_on
    timed = Script(is_open=False)
    timed.step(replace(OPENED, lasts_ms=60_000.0))
    timed.after_step = lambda: check(timed)
    timed.say(640)
    timed.wait(60_000)
    yield timed
