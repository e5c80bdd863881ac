"""Client events that are right: items, responses, and the rest."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

from realtime.protocol.decode import decode
from realtime.protocol.messages import (
    POSITION_UNKNOWN,
    AppendAudio,
    ClientMessage,
    CreateItemWithAudio,
)
from realtime.session.events import (
    ClientClear,
    ClientCommit,
    ClientItemCreate,
    ClientItemDelete,
    ClientItemRetrieve,
    ClientItemTruncate,
    ClientRefused,
    ClientResponseCancel,
    ClientResponseCreate,
    ClientSessionUpdate,
    PlaybackReported,
)
from realtime.session.items import Item, ItemKind, ItemReference, Part, PartKind, Role
from realtime.session.settings import (
    AudioFormat,
    Modality,
    ResponseOptions,
    ToolChoice,
    ToolMode,
)

# What the SDKs really send after their connection opens, as captured from them; see `sdk`.
SDK_MESSAGES = Path(__file__).with_name("sdk_messages.jsonl")


def read(kind: str, **fields: Any) -> ClientMessage:
    return decode(json.dumps({"type": kind, **fields}))


def create(item: dict[str, Any], **fields: Any) -> ClientMessage:
    return read("conversation.item.create", item=item, **fields)


def test_the_buffer() -> None:
    assert read("input_audio_buffer.append", audio="AAEC") == AppendAudio(None, b"\x00\x01\x02")
    assert read("input_audio_buffer.append", audio="", event_id="e") == AppendAudio("e", b"")
    assert read("input_audio_buffer.commit") == ClientCommit(None, POSITION_UNKNOWN)
    assert read("input_audio_buffer.clear", event_id="e") == ClientClear("e", POSITION_UNKNOWN)


def test_items_by_id() -> None:
    assert read("conversation.item.retrieve", item_id="i") == ClientItemRetrieve(None, "i")
    assert read("conversation.item.delete", item_id="i") == ClientItemDelete(None, "i")
    assert read(
        "conversation.item.truncate", item_id="i", content_index=0, audio_end_ms=0
    ) == ClientItemTruncate(None, "i", 0, 0)


def test_cancel() -> None:
    assert read("response.cancel") == ClientResponseCancel(None, None)
    assert read("response.cancel", response_id=None) == ClientResponseCancel(None, None)
    assert read("response.cancel", response_id="r") == ClientResponseCancel(None, "r")


def test_a_report_of_playback() -> None:
    assert read("parley.playback", item_id="i", played_ms=40) == PlaybackReported("i", 40)


def test_a_user_message() -> None:
    item = {
        "id": "mine",
        "object": "realtime.item",
        "status": "incomplete",
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Look:"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
            {"type": "input_audio", "transcript": "said before", "audio": None},
        ],
    }
    parts = (
        Part(PartKind.INPUT_TEXT, "Look:"),
        Part(PartKind.INPUT_IMAGE, image_url="data:image/png;base64,AAAA", image_detail="low"),
        Part(PartKind.INPUT_AUDIO, "said before"),
    )
    wanted = Item("mine", ItemKind.MESSAGE, role=Role.USER, parts=parts)
    assert create(item) == ClientItemCreate(None, wanted)


def test_messages_of_the_other_roles() -> None:
    for role, kind in (("system", "input_text"), ("assistant", "output_text")):
        item = {"type": "message", "role": role, "content": [{"type": kind, "text": "x"}]}
        parts = (Part(PartKind(kind), "x"),)
        wanted = Item("", ItemKind.MESSAGE, role=Role(role), parts=parts)
        assert create(item) == ClientItemCreate(None, wanted)


def test_function_calls() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    assert create(call) == ClientItemCreate(
        None, Item("", ItemKind.FUNCTION_CALL, call_id="c", name="f", arguments="{}")
    )
    output = {"type": "function_call_output", "call_id": "c", "output": ""}
    assert create(output) == ClientItemCreate(
        None, Item("", ItemKind.FUNCTION_CALL_OUTPUT, call_id="c", output="")
    )


def test_places_of_a_new_item() -> None:
    item = {"type": "function_call_output", "call_id": "c", "output": ""}
    for given, wanted in ((None, None), ("", None), ("root", "root"), ("item_1", "item_1")):
        event = create(item, previous_item_id=given)
        assert isinstance(event, ClientItemCreate)
        assert event.previous_item_id == wanted


def test_inline_audio_travels_beside_its_item() -> None:
    audio = [b"\x01\x02", b"\x03\x04\x05"]
    content: list[dict[str, Any]] = [
        {"type": "input_audio", "audio": base64.b64encode(audio[0]).decode()},
        {"type": "input_text", "text": "and"},
        {"type": "input_audio", "audio": base64.b64encode(audio[1]).decode(), "transcript": "hm"},
    ]
    made = create({"type": "message", "role": "user", "content": content}, event_id="e")
    assert isinstance(made, CreateItemWithAudio)
    assert made.event.event_id == "e"
    assert [(a.part_index, a.audio) for a in made.audio] == [(0, audio[0]), (2, audio[1])]
    parts = made.event.item.parts
    assert [part.audio_handle for part in parts] == [
        made.audio[0].handle,
        None,
        made.audio[1].handle,
    ]
    assert [part.text for part in parts] == [None, "and", "hm"]
    assert [part.audio_ms for part in parts] == [0, 0, 0]
    again = create({"type": "message", "role": "user", "content": content})
    assert isinstance(again, CreateItemWithAudio)
    assert len({a.handle for a in made.audio + again.audio}) == 4


def test_a_plain_response() -> None:
    for event in (read("response.create"), read("response.create", response=None)):
        assert event == ClientResponseCreate(None, ResponseOptions())
    assert read("response.create", response={}) == ClientResponseCreate(None, ResponseOptions())


def test_a_response_with_everything() -> None:
    response = {
        "instructions": "Be brief.",
        "output_modalities": ["text"],
        "audio": {"output": {"format": {"type": "audio/pcma"}, "voice": "joe"}},
        "tools": [],
        "tool_choice": "none",
        "max_output_tokens": 9,
        "conversation": "none",
        "metadata": {"a": "1", "b": "2"},
        "input": [
            {"type": "item_reference", "id": "item_1"},
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Hello"}],
            },
        ],
        "prompt": None,
        "reasoning": {"effort": "low"},
        "parallel_tool_calls": True,
    }
    hello = Item("", ItemKind.MESSAGE, role=Role.USER, parts=(Part(PartKind.INPUT_TEXT, "Hello"),))
    assert read("response.create", response=response, event_id="e") == ClientResponseCreate(
        "e",
        ResponseOptions(
            instructions="Be brief.",
            modality=Modality.TEXT,
            voice="joe",
            output_format=AudioFormat("audio/pcma", 8_000),
            tools=(),
            tool_choice=ToolChoice(ToolMode.NONE),
            max_output_tokens=9,
            parallel_tool_calls=True,
            metadata=(("a", "1"), ("b", "2")),
            out_of_band=True,
            input=(ItemReference("item_1"), hello),
        ),
    )


def test_empty_input_is_not_absent_input() -> None:
    for given, wanted in ((None, None), ([], ())):
        event = read("response.create", response={"input": given, "conversation": "auto"})
        assert isinstance(event, ClientResponseCreate)
        assert event.options == ResponseOptions(input=wanted)


def test_unlimited_output_is_said() -> None:
    event = read("response.create", response={"max_output_tokens": "inf"})
    assert event == ClientResponseCreate(None, ResponseOptions(unlimited_output=True))


def test_everything_that_sdks_send_is_understood() -> None:
    kinds: Counter[type] = Counter()
    for line in SDK_MESSAGES.read_text().splitlines():
        captured = json.loads(line)
        answer = decode(captured["text"])
        assert not isinstance(answer, ClientRefused), (captured, answer)
        kinds[type(answer)] += 1
    assert set(kinds) == {
        ClientSessionUpdate,
        ClientItemCreate,
        AppendAudio,
        ClientCommit,
        ClientResponseCreate,
    }
