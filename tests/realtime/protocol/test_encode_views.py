"""Sessions, items and responses as clients see them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from openai.types.realtime import (
    ConversationItem,
    RealtimeResponse,
    realtime_session_create_response,
)
from openai.types.realtime import realtime_transcription_session_create_response as transcription
from pydantic import TypeAdapter

from realtime.protocol.decode import decode_session
from realtime.protocol.item_view import item_view
from realtime.protocol.response_view import response_view
from realtime.protocol.session_schema import ECHOED
from realtime.protocol.session_view import session_view
from realtime.session.items import Item, ItemKind, ItemStatus, Part, PartKind, Role
from realtime.session.notices import ResponseSnapshot, ResponseStatus, ResponseUsage
from realtime.session.settings import (
    AudioFormat,
    Modality,
    SessionSettings,
    SettingsPatch,
)

SDK_ITEM: TypeAdapter[Any] = TypeAdapter(ConversationItem)


def apply(settings: SessionSettings, patch: SettingsPatch) -> SessionSettings:
    """What the session does with a patch, as SettingsPatch words it."""
    echoed = dict(settings.echoed_json)
    changed: dict[str, Any] = {}
    for name, value in patch.values:
        if name.startswith(ECHOED):
            echoed[name.removeprefix(ECHOED)] = str(value)
        else:
            changed[name] = value
    return replace(settings, **changed, echoed_json=tuple(echoed.items()))


def updated(session: dict[str, Any], before: SessionSettings | None = None) -> dict[str, Any]:
    patch = decode_session(session)
    assert isinstance(patch, SettingsPatch), patch
    return session_view("sess_1", apply(before or SessionSettings(), patch), 1)


def assert_holds(view: Any, given: Any) -> None:
    """Everything in `given` is in `view`, which may hold more."""
    if isinstance(given, dict) and isinstance(view, dict):
        for name, value in given.items():
            assert name in view
            assert_holds(view[name], value)
    else:
        assert view == given


def test_a_session_shows_all_that_a_client_set() -> None:
    given: dict[str, Any] = {
        "type": "realtime",
        "output_modalities": ["text"],
        "instructions": "Be kind.",
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
        "tool_choice": {"type": "function", "name": "f"},
        "max_output_tokens": 77,
        "audio": {
            "input": {
                "format": {"type": "audio/pcmu"},
                "transcription": {"model": "m", "language": "en", "keywords": ["Parley"]},
                "noise_reduction": {"type": "far_field"},
                "turn_detection": {"type": "server_vad", "threshold": 0.3},
            },
            "output": {"format": {"type": "audio/pcma"}, "voice": "joe", "speed": 1.2},
        },
        "truncation": {"type": "retention_ratio", "retention_ratio": 0.5},
        "tracing": {"workflow_name": "w"},
        "include": ["item.input_audio_transcription.logprobs"],
        "parallel_tool_calls": False,
        "reasoning": {"effort": "low"},
    }
    view = updated(given)
    assert_holds(view, given)
    realtime_session_create_response.RealtimeSessionCreateResponse.model_validate(view)


@pytest.mark.parametrize("kind", ["server_vad", "semantic_vad"])
def test_defaults_of_turn_detection_are_filled(kind: str) -> None:
    view = updated({"type": "realtime", "audio": {"input": {"turn_detection": {"type": kind}}}})
    detection = view["audio"]["input"]["turn_detection"]
    assert detection["type"] == kind
    assert detection["create_response"] is True
    assert detection["interrupt_response"] is True
    if kind == "server_vad":
        assert detection == {
            "type": "server_vad",
            "threshold": 0.5,
            "prefix_padding_ms": 300,
            "silence_duration_ms": 500,
            "idle_timeout_ms": None,
            "create_response": True,
            "interrupt_response": True,
        }


def test_a_voice_object_is_echoed_as_a_string() -> None:
    view = updated({"type": "realtime", "audio": {"output": {"voice": {"id": "joe"}}}})
    assert view["audio"]["output"]["voice"] == "joe"


def test_what_is_echoed_can_be_cleared() -> None:
    settings = SessionSettings(
        echoed_json=(("tracing", '"auto"'), ("audio.input.noise_reduction", '{"type":"x"}'))
    )
    kept = updated({"type": "realtime"}, settings)
    reduction = {"type": "x", "strength": 1}
    assert (kept["tracing"], kept["audio"]["input"]["noise_reduction"]) == ("auto", reduction)
    cleared = updated(
        {"type": "realtime", "tracing": None, "audio": {"input": {"noise_reduction": None}}},
        settings,
    )
    assert (cleared["tracing"], cleared["audio"]["input"]["noise_reduction"]) == (None, None)


def test_the_strength_of_noise_reduction_stays_until_another_is_given() -> None:
    settings = SessionSettings()
    seen: list[object] = []
    for given in (
        {"type": "near_field"},
        {"type": "near_field", "strength": 0.4},
        {"type": "far_field"},
        None,
        {"type": "far_field", "strength": None},
    ):
        session = {"type": "realtime", "audio": {"input": {"noise_reduction": given}}}
        patch = decode_session(session)
        assert isinstance(patch, SettingsPatch)
        settings = apply(settings, patch)
        seen.append(session_view("sess_1", settings, 0)["audio"]["input"]["noise_reduction"])
    assert seen == [
        {"type": "near_field", "strength": 1},
        {"type": "near_field", "strength": 0.4},
        {"type": "far_field", "strength": 0.4},
        None,
        {"type": "far_field", "strength": 0.4},
    ]


def test_a_transcription_session() -> None:
    view = updated(
        {"type": "transcription", "audio": {"input": {"transcription": {"model": "whisper-1"}}}}
    )
    assert view == {
        "type": "transcription",
        "object": "realtime.transcription_session",
        "id": "sess_1",
        "expires_at": 1,
        "include": None,
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": 24_000},
                "transcription": {"model": "whisper-1", "language": None, "prompt": None},
                "noise_reduction": None,
                "turn_detection": {
                    "type": "semantic_vad",
                    "eagerness": "auto",
                    "create_response": True,
                    "interrupt_response": True,
                },
            }
        },
    }
    transcription.RealtimeTranscriptionSessionCreateResponse.model_validate(view)


ITEMS: list[tuple[Item, dict[str, Any]]] = [
    (
        Item(
            "i",
            ItemKind.MESSAGE,
            role=Role.USER,
            parts=(
                Part(PartKind.INPUT_TEXT, "Look"),
                Part(PartKind.INPUT_AUDIO, "heard", audio_handle="h", audio_ms=10),
                Part(PartKind.INPUT_IMAGE, image_url="data:image/png;base64,AA=="),
            ),
        ),
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look"},
                {"type": "input_audio", "transcript": "heard"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
            ],
        },
    ),
    (
        Item("i", ItemKind.MESSAGE, role=Role.SYSTEM, parts=(Part(PartKind.INPUT_TEXT, "x"),)),
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "x"}]},
    ),
    (
        Item("i", ItemKind.MESSAGE, role=Role.ASSISTANT, parts=(Part(PartKind.OUTPUT_AUDIO),)),
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_audio", "transcript": ""}],
        },
    ),
    (
        Item("i", ItemKind.FUNCTION_CALL, call_id="c", name="f"),
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""},
    ),
    (
        Item("i", ItemKind.FUNCTION_CALL_OUTPUT, call_id="c", output="7"),
        {"type": "function_call_output", "call_id": "c", "output": "7"},
    ),
]


@pytest.mark.parametrize("status", list(ItemStatus))
@pytest.mark.parametrize(("item", "view"), ITEMS)
def test_items(item: Item, view: dict[str, Any], status: ItemStatus) -> None:
    seen = item_view(replace(item, status=status))
    common = {"id": "i", "object": "realtime.item", "status": status.value}
    assert json.loads(json.dumps(seen)) == {**common, **view}
    SDK_ITEM.validate_python(seen)


def test_an_image_shows_its_detail_if_it_has_one() -> None:
    part = Part(PartKind.INPUT_IMAGE, image_url="data:image/png;base64,AA==", image_detail="low")
    item = Item("i", ItemKind.MESSAGE, role=Role.USER, parts=(part,))
    assert item_view(item)["content"][0]["detail"] == "low"


RESPONSE = ResponseSnapshot(
    id="resp_1",
    status=ResponseStatus.COMPLETED,
    output=(ITEMS[2][0],),
    conversation_id=None,
    modality=Modality.TEXT,
    voice="joe",
    output_format=AudioFormat("audio/pcmu", 8_000),
    max_output_tokens=9,
    metadata=(("a", "1"),),
    usage=ResponseUsage(input_text=100, input_cached=60, output_text=7, output_audio=20),
)


def seen_response(**changes: Any) -> dict[str, Any]:
    view = response_view(replace(RESPONSE, **changes))
    RealtimeResponse.model_validate(view)
    return view


def test_a_finished_response() -> None:
    assert seen_response() == {
        "object": "realtime.response",
        "id": "resp_1",
        "status": "completed",
        "status_details": None,
        "output": [item_view(ITEMS[2][0])],
        "conversation_id": None,
        "output_modalities": ["text"],
        "max_output_tokens": 9,
        "audio": {"output": {"format": {"type": "audio/pcmu"}, "voice": "joe"}},
        "usage": {
            "total_tokens": 127,
            "input_tokens": 100,
            "output_tokens": 27,
            "input_token_details": {
                "text_tokens": 100,
                "audio_tokens": 0,
                "image_tokens": 0,
                "cached_tokens": 60,
                "cached_tokens_details": {
                    "text_tokens": 60,
                    "audio_tokens": 0,
                    "image_tokens": 0,
                },
            },
            "output_token_details": {"text_tokens": 7, "audio_tokens": 20},
        },
        "metadata": {"a": "1"},
    }


@pytest.mark.parametrize(
    ("changes", "details"),
    [
        ({"status": ResponseStatus.IN_PROGRESS}, None),
        (
            {"status": ResponseStatus.CANCELLED, "reason": "turn_detected"},
            {"type": "cancelled", "reason": "turn_detected"},
        ),
        (
            {"status": ResponseStatus.INCOMPLETE, "reason": "max_output_tokens"},
            {"type": "incomplete", "reason": "max_output_tokens"},
        ),
        (
            {"status": ResponseStatus.FAILED, "error_code": "tts_failed", "error_message": "m"},
            {
                "type": "failed",
                "error": {"type": "server_error", "code": "tts_failed", "message": "m"},
            },
        ),
        (
            {"status": ResponseStatus.FAILED, "error_code": "tts_failed"},
            {"type": "failed", "error": {"type": "server_error", "code": "tts_failed"}},
        ),
    ],
)
def test_how_a_response_ended(changes: dict[str, Any], details: dict[str, Any] | None) -> None:
    view = seen_response(**changes)
    assert view["status"] == changes["status"].value
    assert view["status_details"] == details
