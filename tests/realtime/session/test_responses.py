"""Responses: the order of their notices, what their creator chose, and those out of band."""

from __future__ import annotations

import pytest

from realtime.session import effects as fx
from realtime.session.items import Item, ItemKind, ItemReference, Part, PartKind, Role
from realtime.session.notices import (
    ArgumentsDone,
    ErrorRaised,
    ItemAdded,
    OutputItemDone,
    ResponseCreated,
    ResponseDone,
    ResponseStatus,
    TextDelta,
    TextDone,
)
from realtime.session.settings import AudioFormat, Modality, ServerVad, Tool, ToolChoice, ToolMode
from realtime.session.states import Speaking
from tests.realtime.session.script import Script, text_only

CANCELLED = ResponseStatus.CANCELLED


def ended(script: Script) -> list[tuple[str, str | None]]:
    return [(done.response.status, done.response.reason) for done in script.told(ResponseDone)]


# ---- shape -------------------------------------------------------------------------------------


def test_a_spoken_reply_has_the_order_of_the_wire() -> None:
    script = Script()
    script.create()
    script.answer("It is noon.", 800)
    script.wait(2000)
    assert script.names()[1:] == [
        "ResponseCreated",
        "OutputItemAdded",
        "ItemAdded",
        "PartAdded",
        "TextDelta",
        "AudioDone",
        "TextDone",
        "PartDone",
        "OutputItemDone",
        "ItemDone",
        "ResponseDone",
    ]
    usage = script.told(ResponseDone)[0].response.usage
    assert usage is not None and (usage.input_text, usage.input_cached) == (10, 2)


def test_text_goes_before_the_audio_that_speaks_it() -> None:
    script = Script()
    script.create()
    script.write("one two")
    script.speak(40, 3)
    assert [delta.delta for delta in script.told(TextDelta)] == ["one"]
    script.speak(40, 7)
    assert [delta.delta for delta in script.told(TextDelta)] == ["one", " two"]


@pytest.mark.parametrize("piece_ms", [7, 33, 40, 41, 997])
def test_every_sample_leaves_whatever_the_size_of_its_pieces(piece_ms: int) -> None:
    script = Script()
    script.create()
    script.write("It is noon.")
    for _ in range(9):
        script.speak(piece_ms)
        script.wait(20)
    script.finish()
    script.wait(10_000)
    (heard,) = script.egress.heard.values()
    assert heard.sent == 9 * piece_ms * 24
    assert script.told(ResponseDone)[0].response.output[0].parts[0].audio_ms == 9 * piece_ms


def test_a_written_reply_is_sent_as_it_comes() -> None:
    script = Script(settings=text_only(turn_detection=ServerVad()))
    script.create()
    script.write("It is ")
    script.write("noon.")
    script.finish()
    assert script.names()[1:] == [
        "ResponseCreated",
        "OutputItemAdded",
        "ItemAdded",
        "PartAdded",
        "TextDelta",
        "TextDone",
        "PartDone",
        "OutputItemDone",
        "ItemDone",
        "ResponseDone",
    ]
    assert script.speaking is Speaking.IDLE
    assert script.told(TextDone)[0].text == "It is noon."


def test_a_reply_of_calls_alone_has_no_parts_and_ends_at_once() -> None:
    script = Script()
    script.create()
    script.call("look", '{"a":', 0)
    script.call("", "1}", 0)
    script.call("find", "{}", 1, "call_b")
    script.finish("tool_calls")
    assert script.names()[1:] == [
        "ResponseCreated",
        "OutputItemAdded",
        "ItemAdded",
        "ArgumentsDelta",
        "ArgumentsDone",
        "OutputItemDone",
        "ItemDone",
        "OutputItemAdded",
        "ItemAdded",
        "ArgumentsDelta",
        "ArgumentsDone",
        "OutputItemDone",
        "ItemDone",
        "ResponseDone",
    ]
    assert [(done.name, done.arguments) for done in script.told(ArgumentsDone)] == [
        ("look", '{"a":1}'),
        ("find", "{}"),
    ]
    assert script.speaking is Speaking.IDLE


def test_calls_are_told_while_the_words_before_them_are_still_spoken() -> None:
    script = Script()
    script.create()
    script.write("One moment.")
    script.speak(4000)
    script.call("look", "{}")
    script.finish("tool_calls")
    (done,) = script.told(OutputItemDone)
    assert done.item.name == "look" and done.output_index == 1
    assert not script.told(ResponseDone)
    script.output("call_a")
    script.wait(4000)
    assert ended(script) == [("completed", None)]
    script.create()
    assert script.told(ResponseCreated)[1:]


def test_an_index_that_does_not_start_at_zero_makes_one_call() -> None:
    script = Script()
    script.create()
    script.call("look", '{"a":', 3)
    script.call("", "1}", 3)
    script.finish("tool_calls")
    assert [done.item.arguments for done in script.told(OutputItemDone)] == ['{"a":1}']


def test_an_empty_reply_is_an_empty_response() -> None:
    script = Script()
    script.create()
    script.finish()
    assert ended(script) == [("completed", None)]
    assert script.told(ResponseDone)[0].response.output == ()


def test_words_that_the_voice_could_not_speak_are_still_in_the_transcript() -> None:
    script = Script()
    script.create()
    script.write("...")
    script.finish()
    assert script.told(TextDone)[0].text == "..."
    assert ended(script) == [("completed", None)]


# ---- overrides ---------------------------------------------------------------------------------


def test_what_a_client_chose_holds_for_one_response() -> None:
    script = Script()
    tool = Tool("look", "Look.", "{}", "{}")
    script.create(
        modality=Modality.TEXT,
        voice="bass",
        output_format=AudioFormat("audio/pcmu", 8000),
        tools=(tool,),
        tool_choice=ToolChoice(ToolMode.REQUIRED),
        max_output_tokens=7,
        metadata=(("topic", "time"),),
    )
    started = script.done(fx.StartReply)[0]
    assert (started.speak, started.voice, started.max_output_tokens) == (False, "bass", 7)
    assert started.output_format.rate_hz == 8000
    assert started.tools == (tool,) and started.tool_choice.mode is ToolMode.REQUIRED
    created = script.told(ResponseCreated)[0].response
    assert created.metadata == (("topic", "time"),) and created.modality is Modality.TEXT
    script.finish()
    assert script.told(ResponseDone)[0].response.metadata == (("topic", "time"),)
    script.create()
    started = script.done(fx.StartReply)[1]
    assert (started.speak, started.voice, started.tools) == (True, "default", ())


def test_an_explicit_inf_overrides_the_session_s_limit() -> None:
    script = Script()
    script.update(max_output_tokens=100)
    script.create()
    assert script.done(fx.StartReply)[0].max_output_tokens == 100
    script.cancel()
    script.create(unlimited_output=True)
    assert script.done(fx.StartReply)[1].max_output_tokens is None


def test_input_replaces_the_conversation() -> None:
    script = Script()
    script.type("First", "item_a")
    script.type("Second", "item_b")
    extra = Item("", ItemKind.MESSAGE, role=Role.USER, parts=(Part(PartKind.INPUT_TEXT, "More"),))
    script.create(input=(ItemReference("item_a"), extra), instructions="Be brief.")
    assert script.prompt == [("system", "Be brief."), ("user", "First\nMore")]
    script.cancel()
    script.create(input=())
    assert script.prompt == []
    assert script.item_ids == ["item_a", "item_b"]


def test_an_unknown_reference_is_refused() -> None:
    script = Script()
    script.create(input=(ItemReference("item_x"),))
    (error,) = script.told(ErrorRaised)
    assert (error.param, error.client_event_id) == ("response.input[0].id", "e_create")
    assert not script.told(ResponseCreated)


# ---- out of band -------------------------------------------------------------------------------


def test_side_responses_run_in_parallel_and_leave_no_trace() -> None:
    script = Script()
    script.ask()
    script.create(out_of_band=True, modality=Modality.TEXT, metadata=(("n", "1"),))
    script.create(out_of_band=True, modality=Modality.TEXT, metadata=(("n", "2"),))
    main, first, second = [work.request for work in script.live(fx.StartReply)]
    script.write("two", second)
    script.write("one", first)
    script.finish(request=first)
    script.finish(request=second)
    script.write("It is noon.", main)
    script.speak(400, request=main)
    script.finish(request=main)
    script.wait(2000)
    side = [
        done.response for done in script.told(ResponseDone) if not done.response.conversation_id
    ]
    assert [(dict(r.metadata or ())["n"], r.output[0].parts[0].text) for r in side] == [
        ("1", "one"),
        ("2", "two"),
    ]
    assert len(script.told(ItemAdded)) == len(script.item_ids) == 2


def test_speech_interrupts_no_side_response() -> None:
    script = Script()
    script.ask()
    script.create(out_of_band=True)
    main, side = [work.request for work in script.live(fx.StartReply)]
    script.write("A note.", side)
    script.speak(3000, request=side)
    script.write("It is noon.", main)
    script.speak(3000, request=main)
    script.say(320)
    assert ended(script) == [(CANCELLED, "turn_detected")]
    script.finish(request=side)
    script.wait(4000)
    assert ended(script)[1] == ("completed", None)


def test_a_side_response_is_cancelled_by_its_id_alone() -> None:
    script = Script()
    script.create(out_of_band=True)
    side = script.told(ResponseCreated)[0].response.id
    script.cancel()
    assert script.told(ErrorRaised)[0].code == "response_cancel_not_active"
    script.cancel(side)
    assert ended(script) == [(CANCELLED, "client_cancelled")]
    assert not script.works


def test_side_calls_expect_no_output() -> None:
    script = Script()
    script.create(out_of_band=True)
    script.call("look", "{}")
    script.finish("tool_calls")
    assert script.machine.next_deadline_ms() is None
    script.output("call_a")
    assert script.told(ErrorRaised)[0].code == "invalid_tool_call_id"


def test_a_side_response_waits_for_the_words_it_is_about() -> None:
    script = Script(None, hears=None)
    script.say(640)
    script.commit()
    script.create(out_of_band=True, modality=Modality.TEXT)
    assert not script.done(fx.StartReply)
    script.hear("What time is it?")
    assert script.prompt == [("user", "What time is it?")]
    script.finish()
    assert ended(script) == [("completed", None)]


def test_a_side_response_ends_though_nothing_answers() -> None:
    script = Script(None, hears=None)
    script.say(640)
    script.commit()
    script.create(out_of_band=True)
    script.create(out_of_band=True, input=())
    script.wait(60_000)
    assert [status for status, _ in ended(script)] == ["failed", "failed"]
    assert not script.works and script.machine.next_deadline_ms() is None


def test_side_responses_are_bounded() -> None:
    script = Script()
    for _ in range(17):
        script.create(out_of_band=True)
    assert len(script.told(ResponseCreated)) == 16
    assert script.told(ErrorRaised)[0].client_event_id == "e_create"
