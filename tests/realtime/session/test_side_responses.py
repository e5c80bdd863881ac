"""Out-of-band responses: their own input, their own end, and no trace in the conversation."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.items import Item, ItemKind, ItemReference, ItemStatus, Part, PartKind, Role
from realtime.session.notices import (
    ErrorRaised,
    ItemAdded,
    ItemDone,
    OutputItemDone,
    ResponseCreated,
    ResponseDone,
)
from realtime.session.settings import Modality, Tool, ToolChoice, ToolMode
from tests.realtime.session.script import Script, text_only

LOOK = Tool("look", "Look.", "{}", "{}")


def script_of_text(*said: str) -> Script:
    """A silent session whose user has typed this; its items are item_0, item_1, ..."""
    script = Script(settings=text_only(turn_detection=None))
    for number, text in enumerate(said):
        script.type(text, f"item_{number}")
    return script


def user(text: str) -> Item:
    return Item("", ItemKind.MESSAGE, role=Role.USER, parts=(Part(PartKind.INPUT_TEXT, text),))


def side(script: Script, **options: object) -> tuple[str, str]:
    """Start one; its response id and its request."""
    script.create(out_of_band=True, **options)
    return script.told(ResponseCreated)[-1].response.id, script.reply


def done(script: Script, response_id: str) -> ResponseDone:
    (found,) = [d for d in script.told(ResponseDone) if d.response.id == response_id]
    return found


# ---- input -------------------------------------------------------------------------------------


def test_without_an_input_of_its_own_it_sees_the_conversation() -> None:
    script = script_of_text("First", "Second")
    side(script)
    assert script.prompt == [("user", "First\nSecond")]
    side(script, input=None)
    assert script.prompt == [("user", "First\nSecond")]


def test_an_empty_input_is_an_empty_context_and_the_instructions_hold() -> None:
    script = script_of_text("First")
    script.update(instructions="Be kind.")
    side(script, input=())
    assert script.prompt == [("system", "Be kind.")]
    side(script, input=(), instructions="Greet.")
    assert script.prompt == [("system", "Greet.")]
    side(script, input=(), instructions="")
    assert script.prompt == []


def test_items_and_references_stand_in_the_order_of_the_input() -> None:
    script = script_of_text("First", "Second", "Third")
    entries = (ItemReference("item_2"), user("Extra"), ItemReference("item_0"))
    side(script, input=entries)
    assert script.prompt == [("user", "Third\nExtra\nFirst")]
    assert script.item_ids == ["item_0", "item_1", "item_2"]


def test_calls_and_their_outputs_can_be_referred_to() -> None:
    script = Script()
    script.create()
    script.call("look", '{"a": 1}')
    script.finish("tool_calls")
    script.output("call_a", "sunny")
    call, output = script.item_ids
    side(script, input=(ItemReference(call), ItemReference(output), user("Say it.")))
    assert script.prompt == [("assistant", ""), ("tool", "sunny"), ("user", "Say it.")]
    own = Item("", ItemKind.FUNCTION_CALL, call_id="c9", name="look", arguments="{}")
    result = Item("", ItemKind.FUNCTION_CALL_OUTPUT, call_id="c9", output="rain")
    side(script, input=(own, result))
    assert script.prompt == [("assistant", ""), ("tool", "rain")]


@pytest.mark.parametrize("out_of_band", [False, True])
def test_a_reference_to_nothing_is_refused_with_its_place(out_of_band: bool) -> None:
    script = script_of_text("First", "Second")
    script.delete("item_0")
    for place, unknown in ((0, "item_9"), (1, "item_0")):
        entries = (*[ItemReference("item_1")] * place, ItemReference(unknown))
        script.create(out_of_band=out_of_band, input=entries)
        error = script.told(ErrorRaised)[-1]
        assert (error.code, error.param) == ("invalid_value", f"response.input[{place}].id")
        assert unknown in error.message and error.client_event_id == "e_create"
    assert not script.told(ResponseCreated)


def test_a_referred_turn_is_waited_for_until_it_is_heard_and_no_other_is() -> None:
    script = Script(None, hears=None)
    script.say(640)
    script.commit()
    script.say(640)
    script.commit()
    first, second = script.item_ids
    script.create(out_of_band=True, input=(ItemReference(second),))
    script.create(out_of_band=True, input=(ItemReference(first),))
    script.create(out_of_band=True, input=(user("Neither"),))
    assert [started.messages[0].text for started in script.done(fx.StartReply)] == ["Neither"]
    script.hear("One.")
    assert script.prompt == [("user", "One.")]
    script.hear("Two.")
    assert script.prompt == [("user", "Two.")]
    assert len(script.done(fx.StartReply)) == 3


def test_a_referred_turn_that_could_not_be_heard_fails_the_response() -> None:
    script = Script(None, hears=None)
    script.say(640)
    script.commit()
    script.create(out_of_band=True, input=(ItemReference(script.item_ids[0]),))
    (work,) = script.live(fx.Recognise)
    script.step(ev.TranscriptFailed(work.request, "asr_failed", "No."))
    response = script.told(ResponseDone)[0].response
    assert (response.status, response.error_code) == ("failed", "asr_failed")
    # Later it is a turn without words.
    side(script, input=(ItemReference(script.item_ids[0]), user("And?")))
    assert script.prompt == [("user", "And?")]


def test_a_reply_that_was_cut_is_seen_as_far_as_it_was_heard() -> None:
    script = Script()
    script.create()
    script.write("One two three four.")
    script.speak(1000, 7)
    script.wait(2000)
    script.cancel()
    reply = script.item_ids[0]
    side(script, input=(ItemReference(reply),))
    assert script.prompt[0] == ("assistant", "One two")


# ---- beside each other -------------------------------------------------------------------------


def test_eight_at_once_beside_the_default_one_keep_apart() -> None:
    script = Script()
    script.ask()
    main = script.reply
    began = [side(script, modality=Modality.TEXT, metadata=(("n", str(n)),)) for n in range(8)]
    script.write("It is noon.", main)
    script.speak(1000, request=main)
    for number, (_, request) in reversed(list(enumerate(began))):
        script.write(f"side {number}", request)
    for response_id, request in began[::2]:
        script.finish(request=request)
        assert done(script, response_id).response.status == "completed"
    for response_id, _ in began[1::2]:
        script.cancel(response_id)
        assert done(script, response_id).response.reason == "client_cancelled"
    script.finish(request=main)
    script.wait(2000)
    for number, (response_id, _) in enumerate(began):
        response = done(script, response_id).response
        assert response.conversation_id is None
        assert dict(response.metadata or ()) == {"n": str(number)}
        assert [item.parts[0].text for item in response.output] == [f"side {number}"]
    assert len(script.told(ItemAdded)) == len(script.told(ItemDone)) == 2
    assert not script.works and not script.machine.side


def test_speech_and_cancels_without_an_id_leave_it_alone() -> None:
    script = Script()
    script.create()
    response_id, request = side(script, modality=Modality.TEXT)
    script.cancel()
    script.say(640)
    script.silence(640)
    script.cancel()
    script.write("Still here.", request)
    script.finish(request=request)
    assert done(script, response_id).response.status == "completed"
    statuses = [d.response.status for d in script.told(ResponseDone)]
    assert statuses == ["cancelled", "cancelled", "completed"]


def test_it_can_be_cancelled_once() -> None:
    script = Script()
    response_id, request = side(script)
    script.write("A note.", request)
    script.speak(3000, request=request)
    script.wait(500)
    script.cancel(response_id)
    response = done(script, response_id).response
    assert response.output[0].status is ItemStatus.INCOMPLETE
    script.cancel(response_id)
    assert script.told(ErrorRaised)[0].code == "response_cancel_not_active"
    before = len(script.notices)
    script.step(ev.ReplyText(request, " late"))
    script.step(ev.ReplyFinished(request, "stop"))
    script.wait(2000)
    assert len(script.notices) == before


def test_what_is_told_never_concerns_the_conversation() -> None:
    script = script_of_text("First")
    before = len(script.notices)
    _, request = side(script, tools=(LOOK,))
    script.write("Well.", request)
    script.call("look", "{}")
    script.finish("tool_calls", request)
    assert script.names(before) == [
        "ResponseCreated",
        "OutputItemAdded",
        "PartAdded",
        "TextDelta",
        "OutputItemAdded",
        "ArgumentsDelta",
        "ArgumentsDone",
        "OutputItemDone",
        "TextDone",
        "PartDone",
        "OutputItemDone",
        "ResponseDone",
    ]
    assert script.item_ids == ["item_0"]


def test_its_items_are_in_no_later_context_and_cannot_be_found() -> None:
    script = script_of_text("First")
    response_id, request = side(script)
    script.write("A secret note.", request)
    script.finish(request=request)
    made = done(script, response_id).response.output[0].id
    script.create()
    assert script.prompt == [("user", "First")]
    script.cancel()
    script.step(ev.ClientItemRetrieve("e", made))
    script.delete(made)
    script.create(input=(ItemReference(made),))
    assert [error.code for error in script.told(ErrorRaised)] == [
        "item_retrieve_invalid_item_id",
        "item_delete_invalid_item_id",
        "invalid_value",
    ]


# ---- tools and limits --------------------------------------------------------------------------


def test_tools_of_its_own_are_called_and_ask_for_no_output() -> None:
    script = script_of_text("First")
    response_id, request = side(
        script, tools=(LOOK,), tool_choice=ToolChoice(ToolMode.REQUIRED), parallel_tool_calls=False
    )
    started = script.done(fx.StartReply)[0]
    assert started.tools == (LOOK,) and not started.parallel_tool_calls
    script.call("look", '{"a":')
    script.call("", "1}")
    script.finish("tool_calls", request)
    (call,) = done(script, response_id).response.output
    assert (call.name, call.arguments, call.status) == ("look", '{"a":1}', ItemStatus.COMPLETED)
    script.output(call.call_id or "")
    assert script.told(ErrorRaised)[0].code == "invalid_tool_call_id"
    script.create()
    assert script.done(fx.StartReply)[1].tools == (), "the session has none"


def test_a_limit_holds_for_it_too() -> None:
    script = script_of_text("First")
    script.update(max_output_tokens=100)
    response_id, request = side(script, max_output_tokens=1)
    assert script.done(fx.StartReply)[0].max_output_tokens == 1
    script.write("We", request)
    script.finish("length", request)
    response = done(script, response_id).response
    assert (response.status, response.reason) == ("incomplete", "max_output_tokens")
    assert script.told(OutputItemDone)[0].item.status is ItemStatus.INCOMPLETE


def test_all_of_them_end_with_the_session() -> None:
    script = Script()
    for _ in range(3):
        side(script)
    script.step(ev.Disconnected())
    assert not script.works and script.machine.next_deadline_ms() is None
