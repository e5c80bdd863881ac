"""session.update: partial, whole or not at all, at any moment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.notices import ErrorRaised, SessionCreated, SessionUpdated
from realtime.session.settings import SemanticVad, ServerVad, SessionType, SettingsPatch
from realtime.session.states import Listening, Speaking
from tests.realtime.session.script import Script


def spoken() -> Script:
    script = Script()
    script.ask()
    script.answer("It is noon.", 400)
    script.wait(2000)
    return script


def test_an_update_changes_what_it_names_and_tells_the_whole() -> None:
    script = Script()
    before = script.told(SessionCreated)[0].settings
    script.update(instructions="Be brief.")
    (updated,) = script.told(SessionUpdated)
    assert updated.settings == replace(before, instructions="Be brief.")
    assert updated.session_id == script.told(SessionCreated)[0].session_id


def test_an_empty_update_is_answered_too() -> None:
    script = Script()
    script.update()
    assert len(script.told(SessionUpdated)) == 1


def test_echoed_fields_are_replaced_one_by_one() -> None:
    script = Script()
    pairs = (("echoed:tracing", '"auto"'), ("echoed:audio.input.noise_reduction", "null"))
    script.step(ev.ClientSessionUpdate(None, SettingsPatch(pairs)))
    script.step(ev.ClientSessionUpdate(None, SettingsPatch((("echoed:tracing", "null"),))))
    assert dict(script.told(SessionUpdated)[1].settings.echoed_json) == {
        "tracing": "null",
        "audio.input.noise_reduction": "null",
    }


def test_the_voice_is_locked_once_it_was_heard_and_the_update_fails_whole() -> None:
    script = spoken()
    script.update(voice="bass", instructions="Be brief.")
    (error,) = script.told(ErrorRaised)
    assert (error.code, error.client_event_id) == ("cannot_update_voice", "e_update")
    assert script.machine.ctx.settings.instructions == ""
    script.update(voice="default", instructions="Be brief.")
    assert script.machine.ctx.settings.instructions == "Be brief."


def test_the_voice_lock_holds_for_single_responses_but_not_out_of_band() -> None:
    script = spoken()
    script.create(voice="bass")
    assert script.told(ErrorRaised)[0].client_event_id == "e_create"
    script.create(voice="bass", out_of_band=True)
    assert script.done(fx.StartReply)[-1].voice == "bass"


def test_a_side_response_locks_no_voice() -> None:
    script = Script()
    script.create(out_of_band=True)
    script.answer("A note.", 400)
    script.update(voice="bass")
    assert not script.told(ErrorRaised)


def test_the_type_of_a_session_cannot_change() -> None:
    script = Script()
    script.update(type=SessionType.TRANSCRIPTION, instructions="Be brief.")
    (error,) = script.told(ErrorRaised)
    assert (error.code, error.param) == ("invalid_parameter", "session.type")
    assert script.machine.ctx.settings.instructions == ""


@pytest.mark.parametrize("detection", [ServerVad(), SemanticVad(), None])
def test_an_update_in_mid_speech_drops_no_turn_and_no_response(
    detection: ServerVad | SemanticVad | None,
) -> None:
    script = Script(ServerVad(interrupt_response=False))
    script.ask()
    script.write("It is noon.")
    script.speak(3000)
    script.say(320)
    script.update(turn_detection=detection, instructions="Be brief.")
    assert script.speaking is Speaking.SPEAKING
    assert script.machine.listening.turn is not None
    if detection is not None:
        assert script.hearing is Listening.TALKING


def test_an_event_that_could_not_be_read_changes_nothing() -> None:
    script = Script()
    script.step(
        ev.ClientRefused("e_1", "invalid_request_error", "invalid_value", "Invalid value.", "type")
    )
    (error,) = script.told(ErrorRaised)
    assert (error.client_event_id, error.param) == ("e_1", "type")
