"""The server event of every notice, key by key, and accepted by the official SDK's types."""

from __future__ import annotations

import base64
import json
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from openai.types.realtime import RealtimeServerEvent
from pydantic import BaseModel, TypeAdapter, ValidationError

from realtime.protocol.encode import Encoder
from realtime.session import notices
from realtime.session.items import Item, ItemKind, ItemStatus, Part, PartKind, Role
from realtime.session.ledger import Stamp
from realtime.session.notices import Notice, PartAddress, ResponseSnapshot, ResponseStatus
from realtime.session.settings import AudioFormat, Modality, SessionSettings

SDK_EVENT: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)

# The SDK's request type, which it uses for these events, does not declare what the server adds.
UNDECLARED = {
    "session.created": {"id", "object", "expires_at"},
    "session.updated": {"id", "object", "expires_at"},
    "response.done": {"parley"},  # this project's own: the latency of the turn
}

ITEM = Item(
    "item_1",
    ItemKind.MESSAGE,
    ItemStatus.IN_PROGRESS,
    Role.USER,
    (Part(PartKind.INPUT_AUDIO, audio_handle="h", audio_ms=500),),
)
ITEM_VIEW = {
    "id": "item_1",
    "object": "realtime.item",
    "type": "message",
    "status": "in_progress",
    "role": "user",
    "content": [{"type": "input_audio", "transcript": None}],
}
AT = PartAddress("resp_1", "item_2", 0, 1)
AT_VIEW = {"response_id": "resp_1", "item_id": "item_2", "output_index": 0, "content_index": 1}
RESPONSE = ResponseSnapshot(
    id="resp_1",
    status=ResponseStatus.IN_PROGRESS,
    output=(),
    conversation_id="conv_1",
    modality=Modality.AUDIO,
    voice="joe",
    output_format=AudioFormat(),
    max_output_tokens=None,
    metadata=None,
)
RESPONSE_VIEW = {
    "object": "realtime.response",
    "id": "resp_1",
    "status": "in_progress",
    "status_details": None,
    "output": [],
    "conversation_id": "conv_1",
    "output_modalities": ["audio"],
    "max_output_tokens": "inf",
    "audio": {"output": {"format": {"type": "audio/pcm", "rate": 24_000}, "voice": "joe"}},
    "usage": None,
    "metadata": None,
}
SESSION_VIEW = {
    "type": "realtime",
    "object": "realtime.session",
    "id": "sess_1",
    "model": "parley",
    "expires_at": 1_900_000_000,
    "output_modalities": ["audio"],
    "instructions": "",
    "tools": [],
    "tool_choice": "auto",
    "max_output_tokens": "inf",
    "audio": {
        "input": {
            "format": {"type": "audio/pcm", "rate": 24_000},
            "transcription": None,
            "noise_reduction": None,
            "turn_detection": {
                "type": "semantic_vad",
                "eagerness": "auto",
                "create_response": True,
                "interrupt_response": True,
            },
        },
        "output": {
            "format": {"type": "audio/pcm", "rate": 24_000},
            "voice": "default",
            "speed": 1.0,
        },
    },
    "include": None,
    "tracing": None,
    "prompt": None,
    "truncation": "auto",
}
TRANSCRIPTION = "conversation.item.input_audio_transcription"

GOLDEN: list[tuple[Notice, str, dict[str, Any]]] = [
    (
        notices.ErrorRaised("invalid_request_error", "c", "m", "p", "mine"),
        "error",
        {
            "error": {
                "type": "invalid_request_error",
                "code": "c",
                "message": "m",
                "param": "p",
                "event_id": "mine",
            }
        },
    ),
    (
        notices.ErrorRaised("server_error", None, "m"),
        "error",
        {
            "error": {
                "type": "server_error",
                "code": None,
                "message": "m",
                "param": None,
                "event_id": None,
            }
        },
    ),
    (
        notices.SessionCreated("sess_1", SessionSettings(), 1_900_000_000),
        "session.created",
        {"session": SESSION_VIEW},
    ),
    (
        notices.SessionUpdated("sess_1", SessionSettings(), 1_900_000_000),
        "session.updated",
        {"session": SESSION_VIEW},
    ),
    (
        notices.SpeechStarted("item_1", 900),
        "input_audio_buffer.speech_started",
        {"item_id": "item_1", "audio_start_ms": 900},
    ),
    (
        notices.SpeechStopped("item_1", 2900),
        "input_audio_buffer.speech_stopped",
        {"item_id": "item_1", "audio_end_ms": 2900},
    ),
    (
        notices.InputCommitted("item_1", None),
        "input_audio_buffer.committed",
        {"item_id": "item_1", "previous_item_id": None},
    ),
    (notices.InputCleared(), "input_audio_buffer.cleared", {}),
    (
        notices.TimeoutTriggered("item_1", 1, 2),
        "input_audio_buffer.timeout_triggered",
        {"item_id": "item_1", "audio_start_ms": 1, "audio_end_ms": 2},
    ),
    (
        notices.TranscriptionDelta("item_1", 0, "hel"),
        f"{TRANSCRIPTION}.delta",
        {"item_id": "item_1", "content_index": 0, "delta": "hel"},
    ),
    (
        notices.TranscriptionCompleted("item_1", 0, "hello", 1250),
        f"{TRANSCRIPTION}.completed",
        {
            "item_id": "item_1",
            "content_index": 0,
            "transcript": "hello",
            "usage": {"type": "duration", "seconds": 1.25},
        },
    ),
    (
        notices.TranscriptionFailed("item_1", 0, "asr_failed", "m"),
        f"{TRANSCRIPTION}.failed",
        {
            "item_id": "item_1",
            "content_index": 0,
            "error": {"type": "transcription_error", "code": "asr_failed", "message": "m"},
        },
    ),
    (
        notices.ItemAdded(ITEM, None),
        "conversation.item.added",
        {"previous_item_id": None, "item": ITEM_VIEW},
    ),
    (
        notices.ItemDone(ITEM, "item_0"),
        "conversation.item.done",
        {"previous_item_id": "item_0", "item": ITEM_VIEW},
    ),
    (notices.ItemRetrieved(ITEM), "conversation.item.retrieved", {"item": ITEM_VIEW}),
    (
        notices.ItemTruncated("item_2", 0, 1500),
        "conversation.item.truncated",
        {"item_id": "item_2", "content_index": 0, "audio_end_ms": 1500},
    ),
    (notices.ItemDeleted("item_2"), "conversation.item.deleted", {"item_id": "item_2"}),
    (notices.ResponseCreated(RESPONSE), "response.created", {"response": RESPONSE_VIEW}),
    (
        notices.ResponseDone(RESPONSE, ((Stamp.SPEECH_END, 0), (Stamp.FIRST_PLAYED, 803))),
        "response.done",
        {
            "response": RESPONSE_VIEW,
            "parley": {"latency_ms": {"speech_end": 0, "first_audio_played": 803}},
        },
    ),
    (
        notices.OutputItemAdded("resp_1", 0, ITEM),
        "response.output_item.added",
        {"response_id": "resp_1", "output_index": 0, "item": ITEM_VIEW},
    ),
    (
        notices.OutputItemDone("resp_1", 0, ITEM),
        "response.output_item.done",
        {"response_id": "resp_1", "output_index": 0, "item": ITEM_VIEW},
    ),
    (
        notices.PartAdded(AT, Modality.AUDIO),
        "response.content_part.added",
        {**AT_VIEW, "part": {"type": "audio", "transcript": ""}},
    ),
    (
        notices.PartAdded(AT, Modality.TEXT),
        "response.content_part.added",
        {**AT_VIEW, "part": {"type": "text", "text": ""}},
    ),
    (
        notices.PartDone(AT, Modality.AUDIO, "Hi."),
        "response.content_part.done",
        {**AT_VIEW, "part": {"type": "audio", "transcript": "Hi."}},
    ),
    (
        notices.PartDone(AT, Modality.TEXT, "Hi."),
        "response.content_part.done",
        {**AT_VIEW, "part": {"type": "text", "text": "Hi."}},
    ),
    (
        notices.TextDelta(AT, Modality.AUDIO, "Hi"),
        "response.output_audio_transcript.delta",
        {**AT_VIEW, "delta": "Hi"},
    ),
    (
        notices.TextDelta(AT, Modality.TEXT, "Hi"),
        "response.output_text.delta",
        {**AT_VIEW, "delta": "Hi"},
    ),
    (
        notices.TextDone(AT, Modality.AUDIO, "Hi."),
        "response.output_audio_transcript.done",
        {**AT_VIEW, "transcript": "Hi."},
    ),
    (
        notices.TextDone(AT, Modality.TEXT, "Hi."),
        "response.output_text.done",
        {**AT_VIEW, "text": "Hi."},
    ),
    (notices.AudioDone(AT), "response.output_audio.done", AT_VIEW),
    (
        notices.ArgumentsDelta("resp_1", "item_2", 1, "call_1", '{"a'),
        "response.function_call_arguments.delta",
        {
            "response_id": "resp_1",
            "item_id": "item_2",
            "output_index": 1,
            "call_id": "call_1",
            "delta": '{"a',
        },
    ),
    (
        notices.ArgumentsDone("resp_1", "item_2", 1, "call_1", "f", "{}"),
        "response.function_call_arguments.done",
        {
            "response_id": "resp_1",
            "item_id": "item_2",
            "output_index": 1,
            "call_id": "call_1",
            "name": "f",
            "arguments": "{}",
        },
    ),
]


def extras(model: BaseModel) -> Iterator[str]:
    """Names of fields that the SDK's types do not know, at any depth."""
    yield from model.model_extra or ()
    for name in type(model).model_fields:
        value = getattr(model, name)
        for member in value if isinstance(value, list) else [value]:
            if isinstance(member, BaseModel):
                yield from extras(member)


def accept(text: str) -> BaseModel:
    """Validate as strictly as the SDK's types allow: required fields there, no field misnamed."""
    event: BaseModel = SDK_EVENT.validate_json(text)
    assert set(extras(event)) <= UNDECLARED.get(json.loads(text)["type"], set())
    return event


@pytest.mark.parametrize("key", ["event_id", "type", "delta", "item_id", "output_index"])
def test_the_sdk_misses_a_missing_field(key: str) -> None:
    event = json.loads(Encoder().encode_audio_delta("resp_1", "item_2", 0, 1, b""))
    accept(json.dumps(event))
    del event[key]
    with pytest.raises(ValidationError):
        accept(json.dumps(event))


def test_every_notice_is_here() -> None:
    of_parley = {notices.Pong}  # which the SDK does not know: `test_parley_events.py`
    standard = set(typing.get_args(Notice)) - of_parley
    assert {type(notice) for notice, *_ in GOLDEN} == standard


@pytest.mark.parametrize(
    ("notice", "kind", "body"), GOLDEN, ids=[f"{n}-{row[1]}" for n, row in enumerate(GOLDEN)]
)
def test_the_event_of_a_notice(notice: Notice, kind: str, body: dict[str, Any]) -> None:
    text = Encoder("a").encode(notice)
    assert json.loads(text) == {"event_id": "event_a_1", "type": kind, **body}
    accept(text)


@pytest.mark.parametrize("audio", [b"", b"\x00", bytes(range(256)) * 15])
def test_an_audio_delta(audio: bytes) -> None:
    text = Encoder("a").encode_audio_delta("resp_1", "item_2", 0, 1, audio)
    assert json.loads(text) == {
        "event_id": "event_a_1",
        "type": "response.output_audio.delta",
        **AT_VIEW,
        "delta": base64.b64encode(audio).decode(),
    }
    accept(text)


def test_an_audio_delta_with_ids_that_a_client_chose() -> None:
    text = Encoder().encode_audio_delta('r"\\', "i\n\u2028", 0, 0, b"")
    assert (json.loads(text)["response_id"], json.loads(text)["item_id"]) == ('r"\\', "i\n\u2028")


def test_a_retrieved_item_with_its_audio() -> None:
    parts = (Part(PartKind.OUTPUT_AUDIO, "Hi."), Part(PartKind.OUTPUT_TEXT, "there"))
    item = Item("item_2", ItemKind.MESSAGE, ItemStatus.INCOMPLETE, Role.ASSISTANT, parts)
    text = Encoder("a").encode_retrieved(item, {0: b"\x01\x02"})
    assert json.loads(text)["item"]["content"] == [
        {"type": "output_audio", "transcript": "Hi.", "audio": "AQI="},
        {"type": "output_text", "text": "there"},
    ]
    accept(text)
    assert "audio" not in json.loads(Encoder().encode_retrieved(item, {}))["item"]["content"][0]


def test_event_ids_are_unique_in_and_across_connections() -> None:
    encoders = [Encoder(), Encoder()]
    ids = [
        json.loads(text)["event_id"]
        for encoder in encoders
        for _ in range(50)
        for text in (
            encoder.encode(notices.InputCleared()),
            encoder.encode_audio_delta("r", "i", 0, 0, b""),
        )
    ]
    assert len(set(ids)) == len(ids) == 200
    assert all(event_id.startswith("event_") for event_id in ids)


def test_any_text_can_be_sent() -> None:
    for words in ("\u2028", "\ud800", "\U0001f600", 'a"\\\n\x00'):
        text = Encoder().encode(notices.TextDelta(AT, Modality.TEXT, words))
        assert json.loads(text.encode().decode())["delta"] == words
