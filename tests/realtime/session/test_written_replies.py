"""Replies that are written to their end long before they are spoken to it."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.items import ItemStatus
from realtime.session.notices import ArgumentsDone, OutputItemDone, ResponseDone
from tests.realtime.session.script import Script

TEN_WORDS = "one two three four five six seven eight nine ten"


def spoken_so_far(text: str = TEN_WORDS) -> Script:
    """A reply of which half has been made, and a second been heard."""
    script = Script(hears="Count for me")
    script.ask()
    script.write(text)
    script.speak(2500, len(text) // 2)
    script.wait(1000)
    return script


def test_a_call_is_whole_when_the_writing_ends_however_much_is_still_to_be_said() -> None:
    script = spoken_so_far()
    script.call("look", '{"at": "clock"}')
    assert not script.told(ArgumentsDone)
    script.step(ev.ReplyWritten(script.reply, "tool_calls"))
    (done,) = script.told(OutputItemDone)
    assert done.item.name == "look" and done.item.status is ItemStatus.COMPLETED
    assert not script.told(ResponseDone)
    script.output("call_a")
    script.speak(2500)
    script.finish("tool_calls")
    script.wait(5000)
    assert len(script.told(ArgumentsDone)) == 1
    assert script.told(ResponseDone)[0].response.status == "completed"


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_call_of_a_writing_that_was_cut_short_is_never_whole(reason: str) -> None:
    script = spoken_so_far()
    script.call("look", '{"at": ')
    script.step(ev.ReplyWritten(script.reply, reason))
    assert not script.told(ArgumentsDone)
    script.speak(2500)
    script.finish(reason)
    script.wait(5000)
    call = script.told(OutputItemDone)[-1]
    assert call.item.name == "look" and call.item.status is ItemStatus.INCOMPLETE


@pytest.mark.parametrize(
    ("reason", "rest"),
    [
        ("stop", "three four five six seven eight nine ten"),
        ("length", None),  # it was broken off, and has no whole sentence
        (None, None),  # more of it may be on its way
    ],
)
def test_what_was_written_and_never_spoken_is_said_after_a_noise(
    reason: str | None, rest: str | None
) -> None:
    script = spoken_so_far()
    if reason is not None:
        script.step(ev.ReplyWritten(script.reply, reason))
    script.hears = ""
    script.ask()
    assert script.told(ResponseDone)[0].response.status == "cancelled"
    (started,) = script.live(fx.StartReply)
    assert started.text == rest


def test_a_voice_that_fails_after_the_writing_ended_fails_the_response() -> None:
    script = spoken_so_far()
    script.step(ev.ReplyWritten(script.reply, "stop"))
    script.fail()
    script.wait(5000)
    assert script.told(ResponseDone)[0].response.status == "failed"
