"""Where the time of a turn went, as `response.done` tells it."""

from __future__ import annotations

import pytest

from realtime.session import events as ev
from realtime.session.ledger import Stamp
from realtime.session.notices import ResponseDone
from tests.realtime.session.script import Script, text_only

SPOKEN_TURN = (
    Stamp.SPEECH_END,
    Stamp.TRANSCRIPT,
    Stamp.TURN_END,
    Stamp.COMMITTED,
    Stamp.CREATED,
    Stamp.FIRST_TEXT,
    Stamp.VOICED,
    Stamp.FIRST_AUDIO,
    Stamp.FIRST_SENT,
    Stamp.FIRST_PLAYED,
    Stamp.DONE,
)


def latency(script: Script) -> dict[Stamp, int]:
    (done,) = script.told(ResponseDone)
    times = [at_ms for _, at_ms in done.latency_ms]
    assert times == sorted(times)
    return dict(done.latency_ms)


def answer_slowly(script: Script) -> None:
    script.wait(300)
    script.step(ev.ReplyText(script.reply, "It is noon."))
    script.wait(20)
    script.step(ev.ReplyVoiced(script.reply))
    script.wait(200)
    script.speak(800)
    script.finish()
    script.wait(2000)


def test_a_spoken_turn_passes_every_station() -> None:
    script = Script()
    script.ask(silence_ms=512)
    answer_slowly(script)
    stations = latency(script)
    assert set(stations) == set(SPOKEN_TURN)
    assert stations[Stamp.SPEECH_END] == 0
    assert stations[Stamp.TURN_END] >= 500, "the silence that the client wanted"
    assert stations[Stamp.FIRST_TEXT] - stations[Stamp.CREATED] == 300
    assert stations[Stamp.VOICED] - stations[Stamp.FIRST_TEXT] == 20
    assert stations[Stamp.FIRST_AUDIO] - stations[Stamp.VOICED] == 200
    assert stations[Stamp.FIRST_PLAYED] >= stations[Stamp.FIRST_SENT]


def test_a_drafted_reply_was_begun_before_the_turn_was_over() -> None:
    script = Script(drafts=True)
    script.say(800)
    script.silence(320)
    script.write("It is noon.")
    script.silence(640)
    script.speak(800)
    script.finish()
    script.wait(2000)
    stations = latency(script)
    assert stations[Stamp.FIRST_TEXT] < stations[Stamp.TURN_END] < stations[Stamp.FIRST_SENT]


def test_a_typed_turn_counts_from_its_creation() -> None:
    script = Script(settings=text_only())
    script.type("What time is it?")
    script.create()
    script.wait(120)
    script.write("Noon.")
    script.finish()
    script.wait(10)
    stations = latency(script)
    assert stations[Stamp.CREATED] == 0
    assert stations[Stamp.FIRST_TEXT] == 120
    assert Stamp.FIRST_PLAYED not in stations and Stamp.SPEECH_END not in stations


@pytest.mark.parametrize("wait_ms", [0, 500])
def test_a_cancelled_response_tells_what_it_passed(wait_ms: int) -> None:
    script = Script()
    script.ask()
    script.wait(wait_ms)
    script.cancel()
    stations = latency(script)
    assert Stamp.CREATED in stations and Stamp.DONE in stations
    assert Stamp.FIRST_TEXT not in stations
