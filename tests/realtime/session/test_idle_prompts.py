"""The agent asks whether somebody is there: once, and only when nobody and nothing is busy."""

from __future__ import annotations

import pytest

from realtime.session import events as ev
from realtime.session.notices import (
    InputCommitted,
    ItemAdded,
    ResponseCreated,
    TimeoutTriggered,
)
from realtime.session.settings import ServerVad
from realtime.session.states import Speaking
from tests.realtime.session.script import Script

IDLE = ServerVad(idle_timeout_ms=5000)


def answered(ms: int = 800) -> Script:
    script = Script(IDLE)
    script.ask()
    script.answer("It is noon.", ms)
    return script


def test_the_timeout_counts_from_the_end_of_playback() -> None:
    script = answered(3000)
    script.wait(3000 + 4999)
    assert not script.told(TimeoutTriggered)
    script.wait(1)
    (triggered,) = script.told(TimeoutTriggered)
    assert script.names()[-5:] == [
        "TimeoutTriggered",
        "InputCommitted",
        "ItemAdded",
        "ItemDone",
        "ResponseCreated",
    ]
    assert script.told(InputCommitted)[-1].item_id == triggered.item_id
    assert triggered.audio_end_ms == script.position // 16
    assert script.told(ItemAdded)[-1].item.parts[0].text == ""


def test_a_prompt_is_never_followed_by_another_without_a_sign_of_the_user() -> None:
    script = answered()
    script.wait(6000)
    script.answer("Are you there?", 400)
    script.wait(60_000)
    assert len(script.told(TimeoutTriggered)) == 1
    script.ask()
    script.answer()
    script.wait(10_000)
    assert len(script.told(TimeoutTriggered)) == 2


def test_a_tool_s_output_is_no_sign_of_the_user() -> None:
    script = answered()
    script.wait(6000)
    script.call("look", "{}")
    script.finish("tool_calls")
    script.output("call_a")
    script.create()
    script.answer("Are you there?", 400)
    script.wait(60_000)
    assert len(script.told(TimeoutTriggered)) == 1


def test_a_greeting_is_followed_by_one_prompt() -> None:
    script = Script(IDLE)
    script.create()
    script.answer("Hello!", 400)
    script.wait(5400)
    assert len(script.told(TimeoutTriggered)) == 1


def test_nobody_is_asked_while_a_tool_runs() -> None:
    script = Script(IDLE)
    script.ask()
    script.call("look", "{}")
    script.finish("tool_calls")
    script.wait(20_000)
    assert not script.told(TimeoutTriggered)
    script.output("call_a")
    script.create()
    script.answer()
    script.wait(7000)
    assert len(script.told(TimeoutTriggered)) == 1


def test_a_forgotten_tool_does_not_silence_the_agent_for_ever() -> None:
    script = Script(IDLE)
    script.ask()
    script.call("look", "{}")
    script.finish("tool_calls")
    script.wait(60_000 + 5000)
    assert len(script.told(TimeoutTriggered)) == 1


@pytest.mark.parametrize("how", ["cancelled", "failed", "side"])
def test_only_a_response_that_was_heard_out_arms_the_timeout(how: str) -> None:
    script = Script(IDLE)
    script.create(out_of_band=how == "side")
    match how:
        case "cancelled":
            script.cancel()
        case "failed":
            script.fail()
        case _:
            script.answer()
    script.wait(20_000)
    assert not script.told(TimeoutTriggered)


def test_speech_stops_the_timeout_and_a_click_does_not() -> None:
    script = answered()
    script.silence(4000)
    script.click()
    script.silence(1700)
    assert script.told(TimeoutTriggered)
    script = answered()
    script.silence(4000)
    script.say(3000)
    assert not script.told(TimeoutTriggered)


def test_a_timeout_during_an_onset_waits_for_the_next_silence() -> None:
    script = answered()
    script.silence(5760)
    script.say(64)
    script.silence(96)
    assert not script.told(TimeoutTriggered)
    script.wait(5100)
    assert script.told(TimeoutTriggered)


def test_noise_that_came_to_nothing_starts_the_timeout_anew() -> None:
    script = answered()
    script.silence(2000)
    script.hears = ""
    script.ask()
    script.wait(4000)
    assert not script.told(TimeoutTriggered)
    script.wait(1100)
    assert script.told(TimeoutTriggered)


def test_a_turn_whose_text_is_awaited_is_no_silence() -> None:
    script = Script(ServerVad(idle_timeout_ms=3000, interrupt_response=False))
    script.ask()
    script.answer("It is noon.", 2000)
    script.hears = None
    script.ask()
    script.wait(8000)
    assert script.speaking is Speaking.IDLE and not script.told(TimeoutTriggered)
    script.hear("And in Rome?")
    assert script.told(ResponseCreated)[1:]


def test_the_timeout_is_not_due_while_a_reply_is_held() -> None:
    script = Script(IDLE)
    script.ask()
    script.write("It is noon.")
    script.speak(8000)
    script.say(32)
    assert script.speaking is Speaking.HELD
    script.wait(990)
    script.silence(96)
    script.finish()
    script.wait(6000)
    assert not script.told(TimeoutTriggered)


def test_the_timeout_follows_the_settings() -> None:
    script = answered()
    script.wait(3000)
    script.update(turn_detection=ServerVad())
    script.wait(10_000)
    assert not script.told(TimeoutTriggered)
    script.update(turn_detection=IDLE)
    script.wait(4999)
    assert not script.told(TimeoutTriggered)
    script.wait(1)
    assert script.told(TimeoutTriggered)


def test_a_parked_session_asks_nobody() -> None:
    script = answered()
    script.wait(2000)
    script.step(ev.Disconnected(resumable=True))
    script.wait(20_000)
    assert not script.told(TimeoutTriggered)
