"""Clients that are lost and come back, in scripts."""

from __future__ import annotations

from realtime.session import events as ev
from realtime.session.effects import TellConversation
from realtime.session.items import Item
from tests.realtime.session.script import Script

TEN_WORDS = "one two three four five six seven eight nine ten"


def lose(script: Script, **how: object) -> None:
    script.step(ev.Disconnected(resumable=True, **how))  # pyright: ignore[reportArgumentType]


def come_back(script: Script) -> None:
    script.step(ev.Reconnected(script.position))


def in_mid_reply(heard_ms: int = 2080, lead_ms: float | None = None) -> Script:
    """A question is answered with ten words of half a second, some of which were heard."""
    script = Script(lead_ms=lead_ms)
    script.ask()
    script.write(TEN_WORDS)
    script.speak(5000)
    script.silence(heard_ms)
    return script


def told_items(script: Script) -> list[Item]:
    """What the last client to come back was told of the conversation."""
    told = script.done(TellConversation)[-1]
    return [item for item, _ in told.items]


def texts(script: Script) -> list[str]:
    return [" ".join(part.text or "" for part in item.parts) for item in told_items(script)]
