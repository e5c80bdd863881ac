"""The checker of event order finds each kind of broken promise in a log that is otherwise right."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.wire_invariants import check_order

Events = list[dict[str, Any]]

ITEM = {"id": "item_a", "type": "message", "role": "assistant"}
WHERE = {"response_id": "resp_1", "item_id": "item_a", "output_index": 0, "content_index": 0}


def response(status: str, *output: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "status": status,
        "output": list(output),
        "conversation_id": "conv_1",
        "usage": None if status == "in_progress" else {},
    }


def log() -> Events:
    """A spoken question and its spoken answer."""
    user = {
        "id": "item_u",
        "type": "message",
        "role": "user",
        "status": "completed",
        "content": [{"type": "input_audio", "transcript": None}],
    }
    begun = {**ITEM, "status": "in_progress", "content": []}
    part = {"type": "audio", "transcript": "Yes."}
    whole = {
        **ITEM,
        "status": "completed",
        "content": [{"type": "output_audio", "transcript": "Yes."}],
    }
    output = {"response_id": "resp_1", "output_index": 0}
    events: Events = [
        {"type": "session.created"},
        {"type": "input_audio_buffer.speech_started", "item_id": "item_u", "audio_start_ms": 0},
        {"type": "input_audio_buffer.speech_stopped", "item_id": "item_u", "audio_end_ms": 9},
        {"type": "input_audio_buffer.committed", "item_id": "item_u", "previous_item_id": None},
        {"type": "conversation.item.added", "item": user, "previous_item_id": None},
        {"type": "conversation.item.done", "item": user, "previous_item_id": None},
        {"type": "response.created", "response": response("in_progress")},
        {"type": "response.output_item.added", **output, "item": begun},
        {"type": "conversation.item.added", "item": begun, "previous_item_id": "item_u"},
        {"type": "response.content_part.added", **WHERE, "part": {**part, "transcript": ""}},
        {"type": "response.output_audio_transcript.delta", **WHERE, "delta": "Yes."},
        {"type": "response.output_audio.delta", **WHERE, "delta": "AAA="},
        {"type": "response.output_audio.done", **WHERE},
        {"type": "response.output_audio_transcript.done", **WHERE, "transcript": "Yes."},
        {"type": "response.content_part.done", **WHERE, "part": part},
        {"type": "response.output_item.done", **output, "item": whole},
        {"type": "conversation.item.done", "item": whole, "previous_item_id": "item_u"},
        {"type": "response.done", "response": response("completed", whole)},
    ]
    return [{**event, "event_id": f"event_{number}"} for number, event in enumerate(events)]


def place(events: Events, kind: str) -> int:
    return next(at for at, event in enumerate(events) if event["type"] == kind)


def without(kind: str) -> Callable[[Events], None]:
    def spoil(events: Events) -> None:
        del events[place(events, kind)]

    return spoil


def after(kind: str, moved: str) -> Callable[[Events], None]:
    """`moved` comes right after `kind`."""

    def spoil(events: Events) -> None:
        event = events.pop(place(events, moved))
        events.insert(place(events, kind) + 1, event)

    return spoil


def twice(kind: str) -> Callable[[Events], None]:
    def spoil(events: Events) -> None:
        at = place(events, kind)
        events.insert(at + 1, {**copy.deepcopy(events[at]), "event_id": "event_again"})

    return spoil


def with_member(kind: str, name: str, value: object) -> Callable[[Events], None]:
    def spoil(events: Events) -> None:
        events[place(events, kind)][name] = value

    return spoil


def test_a_right_log_passes() -> None:
    assert check_order(log()).order == ["item_u", "item_a"]


SPOILT: dict[str, Callable[[Events], None]] = {
    "no session": without("session.created"),
    "two sessions": twice("session.created"),
    "an id twice": with_member("response.created", "event_id", "event_3"),
    "committed, not added": without("conversation.item.added"),
    "a foreign predecessor": with_member("conversation.item.added", "previous_item_id", "item_x"),
    "another predecessor when done": with_member(
        "conversation.item.done", "previous_item_id", "item_x"
    ),
    "an item twice": twice("conversation.item.added"),
    "done twice": twice("conversation.item.done"),
    "speech twice": twice("input_audio_buffer.speech_started"),
    "no beginning": without("response.created"),
    "no end": without("response.done"),
    "the end twice": twice("response.done"),
    "a delta after the end": after("response.done", "response.output_audio.delta"),
    "sound after its end": after("response.output_audio.done", "response.output_audio.delta"),
    "text that no delta said": without("response.output_audio_transcript.delta"),
    "another whole text": with_member("response.output_audio_transcript.done", "transcript", "No."),
    "a part that is not done": without("response.content_part.done"),
    "a part that was not added": without("response.content_part.added"),
    "a gap in the outputs": with_member("response.output_item.added", "output_index", 1),
    "an output item that is not done": without("response.output_item.done"),
    "another output in the end": with_member("response.done", "response", response("completed")),
    "an end in progress": with_member("response.done", "response", response("in_progress")),
    "an unknown event": with_member("session.created", "type", "session.sung"),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_a_broken_promise_is_found(spoil: Callable[[Events], None]) -> None:
    events = log()
    spoil(events)
    with pytest.raises((AssertionError, KeyError, IndexError)):
        check_order(events)


def test_a_user_s_sound_without_its_transcript_is_found() -> None:
    events = log()
    del events[place(events, "conversation.item.added")]["item"]["content"][0]["transcript"]
    with pytest.raises(AssertionError):
        check_order(events)
