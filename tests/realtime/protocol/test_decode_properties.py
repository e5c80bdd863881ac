"""Nothing that a stranger sends gets an exception out of the decoder."""

from __future__ import annotations

import json
import typing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.protocol import messages
from realtime.protocol.decode import decode
from realtime.protocol.encode import Encoder
from realtime.protocol.event_schema import EVENT_SCHEMAS
from realtime.session.events import ClientRefused
from realtime.session.notices import ErrorRaised

CLIENT_MESSAGES = typing.get_args(messages.ClientMessage)

WORDS = [
    *EVENT_SCHEMAS,
    *("realtime", "transcription", "message", "user", "assistant", "system", "function"),
    *(
        "function_call",
        "function_call_output",
        "item_reference",
        "mcp",
        "input_text",
        "output_text",
    ),
    *("input_audio", "input_image", "audio/pcm", "audio/pcmu", "server_vad", "semantic_vad"),
    *("auto", "none", "required", "inf", "AAAA", "root", "", "low", "near_field"),
]
FIELDS = [
    *("type", "event_id", "session", "item", "response", "audio", "item_id", "content_index"),
    *("audio_end_ms", "previous_item_id", "response_id", "content", "role", "text", "transcript"),
    *("call_id", "output", "name", "arguments", "input", "format", "rate", "turn_detection"),
    *("threshold", "eagerness", "transcription", "voice", "speed", "tools", "tool_choice", "model"),
    *("max_output_tokens", "metadata", "conversation", "tracing", "truncation", "include", "id"),
    *("output_modalities", "noise_reduction", "prompt", "reasoning", "image_url", "parameters"),
]
ANY_TEXT = st.text(st.characters(codec=None))  # half characters too
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**400, max_value=10**401)
    | st.floats()
    | st.sampled_from(WORDS)
    | ANY_TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS) | ANY_TEXT, inner, max_size=5)
    ),
    max_leaves=25,
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6)
EVENTS = st.builds(
    lambda kind, body: {**body, "type": kind}, st.sampled_from(list(EVENT_SCHEMAS)), OBJECTS
)


def check(text: str) -> None:
    answer = decode(text)
    assert isinstance(answer, CLIENT_MESSAGES)
    if isinstance(answer, ClientRefused):
        assert answer.code
        assert answer.message
        error = ErrorRaised(answer.type, answer.code, answer.message, answer.param, answer.event_id)
        Encoder().encode(error).encode()


@given(ANY_TEXT)
def test_arbitrary_text(text: str) -> None:
    check(text)


@given(st.binary())
def test_arbitrary_bytes(frame: bytes) -> None:
    assert isinstance(decode(frame), ClientRefused)


@given(VALUES)
def test_arbitrary_json(value: Any) -> None:
    check(json.dumps(value))
    check(json.dumps(value, ensure_ascii=False))


@given(EVENTS)
def test_arbitrary_events(event: dict[str, Any]) -> None:
    check(json.dumps(event))


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("session.update", "session"),
        ("conversation.item.create", "item"),
        ("response.create", "response"),
    ],
)
@given(inner=OBJECTS, word=st.sampled_from(WORDS))
def test_arbitrary_insides(kind: str, field: str, inner: dict[str, Any], word: str) -> None:
    check(json.dumps({"type": kind, field: {**inner, "type": word}}))
    check(json.dumps({"type": kind, field: inner}))


@given(
    st.sampled_from(
        [
            '{"type":"session.update","session":{"type":"realtime","instructions":"x"}}',
            '{"type":"input_audio_buffer.append","audio":"AAECAwQF"}',
            '{"type":"conversation.item.truncate","item_id":"i","content_index":0,"audio_end_ms":9}',
        ]
    ),
    st.integers(0, 90),
    ANY_TEXT,
)
def test_damaged_events(text: str, at: int, damage: str) -> None:
    check(text[:at] + damage + text[at + 1 :])
    check(text[:at])
