"""Items of the conversation as the client makes, reads, cuts and deletes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session import requests
from realtime.session.items import (
    OVERHEAD_CHARACTERS,
    Item,
    ItemKind,
    ItemStatus,
    Part,
    PartKind,
    Role,
)
from realtime.session.notices import (
    ErrorRaised,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
    OutputItemDone,
    ResponseCreated,
    ResponseDone,
    TranscriptionCompleted,
)
from realtime.session.settings import AudioFormat, ServerVad, SessionSettings
from realtime.session.states import Speaking
from tests.realtime.session.script import Script

TEXT = "one two three four five six seven eight nine ten"


def error(script: Script) -> tuple[str | None, str | None, str | None]:
    raised = script.told(ErrorRaised)[-1]
    return raised.code, raised.param, raised.client_event_id


def answered(ms: int = 1000) -> Script:
    """A reply of ten words in a second, sent and heard."""
    script = Script()
    script.ask()
    script.answer(TEXT, ms)
    script.wait(ms + 1000)
    assert script.speaking is Speaking.IDLE
    return script


def test_items_are_placed_where_the_client_wants_them() -> None:
    script = Script()
    script.type("b", "item_b")
    script.type("d", "item_d")
    script.type("a", "item_a", "root")
    script.type("c", "item_c", "item_b")
    assert script.item_ids == ["item_a", "item_b", "item_c", "item_d"]
    assert [added.previous_item_id for added in script.told(ItemAdded)] == [
        None,
        "item_b",
        None,
        "item_b",
    ]
    assert [d.item for d in script.told(ItemDone)] == [a.item for a in script.told(ItemAdded)]


def test_an_item_without_an_id_gets_one() -> None:
    script = Script()
    script.type("hello")
    assert script.item_ids[0].startswith("item_")


def test_a_duplicate_or_misplaced_item_is_refused_whole() -> None:
    script = Script()
    script.type("a", "item_a")
    script.type("again", "item_a")
    assert error(script) == ("item_create_duplicate_item_id", "item.id", "e_item")
    script.type("b", "item_b", "nowhere")
    assert error(script) == (
        "item_create_invalid_previous_item_id",
        "previous_item_id",
        "e_item",
    )
    assert script.item_ids == ["item_a"]


def test_deleting_the_tail_repairs_the_chain() -> None:
    script = Script()
    script.type("a", "item_a")
    script.type("b", "item_b")
    script.delete("item_b")
    script.type("c", "item_c")
    assert script.told(ItemDeleted)
    assert script.told(ItemAdded)[-1].previous_item_id == "item_a"
    assert fx.ForgetItemAudio("item_b") in script.effects


def test_what_does_not_exist_cannot_be_deleted_retrieved_or_truncated() -> None:
    script = Script()
    script.delete("item_x")
    assert error(script) == ("item_delete_invalid_item_id", "item_id", "e_delete")
    script.step(ev.ClientItemRetrieve("e_retrieve", "item_x"))
    assert error(script) == ("item_retrieve_invalid_item_id", "item_id", "e_retrieve")
    script.truncate("item_x", 0)
    assert error(script) == ("item_truncate_invalid_item_id", "item_id", "e_truncate")


def test_an_item_in_progress_can_be_retrieved() -> None:
    script = Script()
    script.ask()
    script.write(TEXT)
    script.speak(3000)
    script.step(ev.ClientItemRetrieve(None, script.item_ids[1]))
    (retrieved,) = script.told(ItemRetrieved)
    assert retrieved.item.status is ItemStatus.IN_PROGRESS
    assert retrieved.item.parts[0].kind is PartKind.OUTPUT_AUDIO


def test_a_reply_whose_item_is_deleted_in_mid_sentence_plays_on() -> None:
    script = Script()
    script.ask()
    script.write(TEXT)
    script.speak(3000)
    script.silence(320)
    deleted = script.item_ids[1]
    script.delete(deleted)
    script.type("mine", item_id=deleted)
    assert error(script)[0] == "item_create_duplicate_item_id"
    script.finish()
    script.wait(5000)
    (done,) = script.told(ResponseDone)
    assert done.response.status == "completed"
    assert deleted in [o.item.id for o in script.told(OutputItemDone)]
    assert deleted not in [d.item.id for d in script.told(ItemDone)]
    script.type("mine", item_id=deleted)
    assert deleted in script.item_ids


def test_audio_in_an_item_is_heard_part_by_part() -> None:
    script = Script(hears=None)
    parts = (
        Part(PartKind.INPUT_TEXT, "Listen:"),
        Part(PartKind.INPUT_AUDIO, audio_handle="first", audio_ms=700),
        Part(PartKind.INPUT_AUDIO, text="known", audio_handle="second", audio_ms=700),
        Part(PartKind.INPUT_AUDIO, audio_handle="third", audio_ms=700),
    )
    item = Item("item_a", ItemKind.MESSAGE, role=Role.USER, parts=parts)
    script.step(ev.ClientItemCreate(None, item))
    script.create()
    script.hear("one")
    assert not script.live(fx.StartReply), "the other part is still to come"
    script.hear("three")
    assert [c.content_index for c in script.told(TranscriptionCompleted)] == [1, 3]
    assert script.prompt == [("user", "Listen: one known three")]


# ---- tool outputs ------------------------------------------------------------------------------


def test_a_call_takes_exactly_one_output() -> None:
    script = Script()
    script.ask()
    script.call("look", "{}")
    script.finish("tool_calls")
    script.output("call_unknown")
    assert error(script) == ("invalid_tool_call_id", "item.call_id", "e_output")
    script.output("call_a", "noon")
    script.output("call_a", "midnight")
    assert error(script) == ("tool_call_already_answered", "item.call_id", "e_output")
    script.create()
    assert script.prompt[-1] == ("tool", "noon")
    answer = script.item_ids[-1]
    script.delete(answer)
    script.output("call_a", "midnight")
    assert script.machine.ctx.conversation.is_answered("call_a")


def test_calls_that_bear_one_id_twice_are_told_apart() -> None:
    script = Script()
    for _ in range(2):
        script.create()
        script.call("look", "{}", call_id="call_0")
        script.finish("tool_calls")
    first, second = [done.item.call_id for done in script.told(OutputItemDone)]
    assert first == "call_0" and second != first
    script.output("call_0", "a")
    script.output(second or "", "b")
    assert not script.told(ErrorRaised)


# ---- truncation --------------------------------------------------------------------------------


@pytest.mark.parametrize(("ms", "text"), [(0, ""), (450, "one two three four"), (1000, TEXT)])
def test_truncation_cuts_audio_text_and_prompt(ms: int, text: str) -> None:
    script = answered()
    item_id = script.item_ids[1]
    script.truncate(item_id, ms)
    assert script.told(ItemTruncated) == [ItemTruncated(item_id, 0, ms)]
    assert fx.TrimItemAudio(item_id, ms) in script.effects
    script.step(ev.ClientItemRetrieve(None, item_id))
    assert script.told(ItemRetrieved)[0].item.parts[0].text == text
    script.create()
    assert ("assistant", text) in script.prompt or not text


def test_truncation_beyond_what_was_sent_is_an_error_but_for_rounding() -> None:
    script = answered()
    item_id = script.item_ids[1]
    script.truncate(item_id, 1002)
    assert error(script) == ("invalid_value", "audio_end_ms", "e_truncate")
    assert "1000ms is already shorter than 1002ms" in script.told(ErrorRaised)[0].message
    script.truncate(item_id, 1001)
    assert script.told(ItemTruncated) == [ItemTruncated(item_id, 0, 1001)]
    script.truncate(item_id, -1)
    assert error(script)[0] == "invalid_value"


def test_what_fills_up_packets_may_be_counted_as_audio() -> None:
    script = Script(settings=SessionSettings(output_format=AudioFormat("audio/opus", 24_000)))
    script.type("What time is it?")
    script.create()
    script.answer(TEXT, 1000)
    script.truncate(script.item_ids[1], 1028)
    assert script.told(ItemTruncated) and not script.told(ErrorRaised)
    script.truncate(script.item_ids[1], 1057)
    assert error(script)[0] == "invalid_value"


def test_truncation_can_only_be_repeated_to_a_shorter_point() -> None:
    script = answered()
    item_id = script.item_ids[1]
    for ms in (800, 500, 500):
        script.truncate(item_id, ms)
    assert len(script.told(ItemTruncated)) == 3
    script.truncate(item_id, 700)
    assert error(script)[0] == "invalid_value"


def test_truncation_in_progress_ends_the_reply_and_stays_cut() -> None:
    script = Script()
    script.ask()
    script.write(TEXT)
    script.speak(3000)
    script.silence(640)
    item_id = script.item_ids[1]
    script.truncate(item_id, 600)
    script.step(ev.PlaybackReported(item_id, 2500))
    (done,) = script.told(ResponseDone)
    assert (done.response.status, done.response.reason) == ("cancelled", "client_cancelled")
    script.wait(5000)
    assert len(script.told(ResponseDone)) == 1
    script.step(ev.ClientItemRetrieve(None, item_id))
    assert script.told(ItemRetrieved)[0].item.parts[0].text == "one two"
    script.create()
    assert script.prompt[-1] == ("assistant", "one two")


def test_a_cancel_in_one_breath_with_the_truncation_spares_the_next_response() -> None:
    script = Script(ServerVad(interrupt_response=False))
    script.ask()
    script.write(TEXT)
    script.speak(3000)
    script.ask()  # its answer waits for the end of the first
    script.truncate(script.item_ids[1], 600)
    script.cancel()
    first, second = script.told(ResponseCreated)
    assert [done.response.id for done in script.told(ResponseDone)] == [first.response.id]
    assert not script.told(ErrorRaised)
    script.cancel()
    assert script.told(ResponseDone)[-1].response.id == second.response.id


def test_truncate_and_cancel_may_come_in_either_order() -> None:
    for is_truncated_first in (True, False):
        script = Script()
        script.ask()
        script.write(TEXT)
        script.speak(3000)
        script.silence(640)
        item_id = script.item_ids[1]
        if is_truncated_first:
            script.truncate(item_id, 600)
        script.cancel()
        if not is_truncated_first:
            script.truncate(item_id, 600)
        assert len(script.told(ResponseDone)) == 1
        assert script.told(ItemTruncated) and not script.told(ErrorRaised)
        script.create()
        assert script.prompt[-1] == ("assistant", "one two")


def test_only_sound_of_the_assistant_can_be_truncated() -> None:
    script = answered()
    script.truncate(script.item_ids[0], 0)
    assert error(script)[0] is None
    script.step(ev.ClientItemTruncate(None, script.item_ids[1], 1, 0))
    assert "Only model output audio" in script.told(ErrorRaised)[-1].message


def message(text: str, item_id: str = "") -> Item:
    return Item(item_id, ItemKind.MESSAGE, role=Role.USER, parts=(Part(PartKind.INPUT_TEXT, text),))


def test_a_conversation_holds_so_much_and_deleting_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "MOST_CHARACTERS", 10 + 3 * OVERHEAD_CHARACTERS)
    script = Script()
    script.step(ev.ClientItemCreate(None, message("12345678", "first")))
    script.step(ev.ClientItemCreate("big", message("123", "second")))
    assert error(script) == ("conversation_full", "item", "big")
    assert [told.item.id for told in script.told(ItemAdded)] == ["first"]
    script.step(ev.ClientItemDelete(None, "first"))
    script.step(ev.ClientItemCreate(None, message("123", "second")))
    assert [told.item.id for told in script.told(ItemAdded)] == ["first", "second"]


def test_parts_without_text_take_room_too() -> None:
    script = Script()
    empty = Part(PartKind.INPUT_TEXT, "")
    item = Item("first", ItemKind.MESSAGE, role=Role.USER, parts=(empty,) * 1000)
    assert item.size_characters == 1001 * OVERHEAD_CHARACTERS
    sent = 0
    while not script.told(ErrorRaised) and sent < 1000:
        sent += 1
        script.step(ev.ClientItemCreate("big", replace(item, id=f"item_{sent}")))
    assert error(script) == ("conversation_full", "item", "big")
    conversation = script.machine.ctx.conversation
    assert conversation.size_characters <= requests.MOST_CHARACTERS
    for item_id in script.item_ids:
        script.delete(item_id)
    assert conversation.size_characters == 0
