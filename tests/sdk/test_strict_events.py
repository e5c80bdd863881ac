"""The strict reading of events finds what it is there to find."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sdk.strict_events import faults, known_events


def added() -> dict[str, Any]:
    return {
        "type": "conversation.item.added",
        "event_id": "event_1",
        "previous_item_id": None,
        "item": {
            "id": "item_1",
            "object": "realtime.item",
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": [{"type": "input_audio", "transcript": None}],
        },
    }


def test_an_event_as_declared_has_no_faults() -> None:
    assert faults(added()) == []


def test_the_server_s_own_member_is_one_object_in_its_place() -> None:
    cleared = {"type": "input_audio_buffer.cleared", "event_id": "event_1"}
    assert faults(cleared) == []
    assert faults({**cleared, "parley": {}}) == [
        "input_audio_buffer.cleared: parley is declared nowhere"
    ]
    done = {"type": "response.done", "event_id": "event_1", "response": {}}
    assert faults({**done, "parley": {"latency_ms": {}}}) == []
    assert faults({**done, "parley": 1}) == ["response.done: parley is no object"]


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("event_id",), 7, "event_id: Input should be a valid string"),
        (("item", "id"), 7, ".id: Input should be a valid string"),
        (("item", "status"), "cancelled", ".status: Input should be 'completed'"),
        (("item", "mood"), "good", "item.mood is declared nowhere"),
        (("item", "content", 0, "volume"), 1, "item.content.0.volume is declared nowhere"),
        (("type",), "conversation.item.sung", "no type of server event"),
    ],
)
def test_one_wrong_member_is_found(path: tuple[str | int, ...], value: object, fault: str) -> None:
    event: Any = added()
    target = event
    for name in path[:-1]:
        target = target[name]
    target[path[-1]] = value
    assert any(fault in found for found in faults(event)), faults(event)


def test_a_missing_member_is_found() -> None:
    event = added()
    del event["item"]
    assert faults(event) == ["conversation.item.added: item: Field required"]


def test_the_sdk_s_whole_union_is_known() -> None:
    assert {"session.created", "response.done", "error"} <= set(known_events())
    assert len(known_events()) > 40
