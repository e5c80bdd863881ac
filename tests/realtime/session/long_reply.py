"""An agent in the middle of a long reply: where sounds over its speech are tried."""

from __future__ import annotations

from realtime.session.settings import TurnDetection
from realtime.session.states import Speaking
from tests.realtime.session.script import SERVER_VAD, Script

STORY = "Once upon a time there was a ship that sailed to the end of the world."


def speaking(
    ms: int = 12_000,
    heard_ms: int = 1500,
    lead_ms: float | None = 160,
    detection: TurnDetection = SERVER_VAD,
) -> Script:
    """`ms` of speech are made, of which `heard_ms` have been heard; recognitions wait."""
    script = Script(detection, hears=None, judges=0.9, lead_ms=lead_ms)
    script.create()
    script.write(STORY)
    script.speak(ms)
    script.wait(heard_ms)
    assert script.speaking is Speaking.SPEAKING
    return script
