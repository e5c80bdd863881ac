"""`session.update`: what is absent stays, what is null is cleared, what is given replaces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.protocol.decode import decode, decode_session
from realtime.protocol.problems import Problem
from realtime.session.events import ClientSessionUpdate
from realtime.session.settings import (
    AudioFormat,
    Eagerness,
    Modality,
    SemanticVad,
    ServerVad,
    SessionType,
    SettingsPatch,
    Tool,
    ToolChoice,
    ToolMode,
    Transcription,
    Truncation,
    TruncationMode,
)


def patch(**session: Any) -> dict[str, object]:
    event = {"type": "session.update", "session": {"type": "realtime", **session}}
    answer = decode(json.dumps(event))
    assert isinstance(answer, ClientSessionUpdate), answer
    values = dict(answer.patch.values)
    assert len(values) == len(answer.patch.values)
    assert values.pop("type") is SessionType(event["session"]["type"])
    return values


def test_an_empty_update_changes_nothing() -> None:
    assert patch() == {}
    assert patch(audio={}) == {}
    assert patch(audio={"input": {}, "output": {}}) == {}


def test_the_model_is_fixed_and_may_be_resent() -> None:
    assert patch(model="gpt-realtime") == {}
    assert patch(type="transcription", model="gpt-realtime") == {}


def test_null_clears() -> None:
    assert patch(
        audio={"input": {"turn_detection": None, "transcription": None, "noise_reduction": None}},
        tracing=None,
        prompt=None,
        include=None,
    ) == {
        "turn_detection": None,
        "transcription": None,
        "echoed:audio.input.noise_reduction": "null",
        "echoed:tracing": "null",
        "echoed:prompt": "null",
        "echoed:include": "null",
    }


@pytest.mark.parametrize(
    "name",
    [
        "instructions",
        "output_modalities",
        "tools",
        "tool_choice",
        "max_output_tokens",
        "audio",
        "model",
        "truncation",
        "parallel_tool_calls",
        "reasoning",
    ],
)
def test_null_means_unchanged_where_nothing_can_be_cleared(name: str) -> None:
    assert patch(**{name: None}) == {}


def test_empty_values_are_values() -> None:
    assert patch(instructions="", tools=[]) == {"instructions": "", "tools": ()}


@pytest.mark.parametrize(
    ("given", "detection"),
    [
        ({"type": "server_vad"}, ServerVad()),
        ({"type": "server_vad", "threshold": None}, ServerVad()),
        ({"type": "server_vad", "threshold": 0}, ServerVad(threshold=0)),
        (
            {
                "type": "server_vad",
                "threshold": 0.4,
                "prefix_padding_ms": 100,
                "silence_duration_ms": 200,
                "idle_timeout_ms": 6000,
                "create_response": False,
                "interrupt_response": False,
            },
            ServerVad(0.4, 100, 200, 6000, False, False),
        ),
        ({"type": "semantic_vad"}, SemanticVad()),
        (
            {"type": "semantic_vad", "eagerness": "low", "interrupt_response": False},
            SemanticVad(Eagerness.LOW, True, False),
        ),
    ],
)
def test_turn_detection_is_replaced_and_its_defaults_filled(
    given: dict[str, Any], detection: object
) -> None:
    assert patch(audio={"input": {"turn_detection": given}}) == {"turn_detection": detection}


def test_transcription_keeps_what_it_does_not_use() -> None:
    given = {"model": "gpt-4o-transcribe", "language": "en", "prompt": "Parley", "delay": "low"}
    assert patch(audio={"input": {"transcription": given}}) == {
        "transcription": Transcription("gpt-4o-transcribe", "en", "Parley", '{"delay":"low"}')
    }
    assert patch(audio={"input": {"transcription": {}}}) == {"transcription": Transcription()}


def test_formats_and_voice() -> None:
    assert patch(
        audio={
            "input": {"format": {"type": "audio/pcmu"}},
            "output": {"format": {"type": "audio/pcm"}, "voice": {"id": "joe"}, "speed": 1},
        }
    ) == {
        "input_format": AudioFormat("audio/pcmu", 8_000),
        "output_format": AudioFormat("audio/pcm", 24_000),
        "voice": "joe",
        "speed": 1.0,
    }


def test_tools_keep_their_wire_form() -> None:
    wire = {
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        "name": "weather",
        "type": "function",
    }
    bare = {"type": "function", "name": "now", "description": "The time."}
    assert patch(tools=[wire, bare], tool_choice={"type": "function", "name": "now"}) == {
        "tools": (
            Tool(
                "weather",
                "",
                '{"type":"object","properties":{"city":{"type":"string"}}}',
                json.dumps(wire, separators=(",", ":")),
            ),
            Tool(
                "now",
                "The time.",
                '{"type":"object","properties":{}}',
                json.dumps(bare, separators=(",", ":")),
            ),
        ),
        "tool_choice": ToolChoice(ToolMode.FUNCTION, "now"),
    }


def test_words_of_tool_choice_and_length() -> None:
    assert patch(tool_choice="required", max_output_tokens="inf") == {
        "tool_choice": ToolChoice(ToolMode.REQUIRED),
        "max_output_tokens": None,
    }
    assert patch(max_output_tokens=7) == {"max_output_tokens": 7}
    assert patch(output_modalities=["text"]) == {"modality": Modality.TEXT}


def test_what_is_only_echoed_is_kept_as_it_came() -> None:
    assert patch(
        audio={"input": {"noise_reduction": {"type": "near_field"}}},
        tracing={"workflow_name": "w", "metadata": {"a": [1]}},
        include=["item.input_audio_transcription.logprobs"],
        reasoning={"effort": "low"},
    ) == {
        "echoed:audio.input.noise_reduction": '{"type":"near_field"}',
        "echoed:tracing": '{"workflow_name":"w","metadata":{"a":[1]}}',
        "echoed:include": '["item.input_audio_transcription.logprobs"]',
        "echoed:reasoning": '{"effort":"low"}',
    }


def test_what_the_prompt_keeps_and_how_many_calls_there_may_be() -> None:
    retention = {"type": "retention_ratio", "retention_ratio": 0.8}
    assert patch(truncation=retention, parallel_tool_calls=False) == {
        "truncation": Truncation(TruncationMode.RETENTION_RATIO, 0.8),
        "parallel_tool_calls": False,
    }


def test_a_transcription_session() -> None:
    audio = {"input": {"transcription": {"model": "whisper-1"}, "turn_detection": None}}
    assert patch(type="transcription", audio=audio) == {
        "turn_detection": None,
        "transcription": Transcription("whisper-1"),
    }


def test_a_session_of_a_request_body() -> None:
    assert decode_session({"type": "realtime", "instructions": "x"}) == SettingsPatch(
        (("type", SessionType.REALTIME), ("instructions", "x"))
    )
    for wrong, param in (
        (5, "session"),
        ({}, "session.type"),
        ({"type": "realtime", "voice": "x"}, "session.voice"),
    ):
        answer = decode_session(wrong)
        assert isinstance(answer, Problem)
        assert answer.param == param
