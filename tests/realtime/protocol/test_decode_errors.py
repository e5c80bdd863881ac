"""What a client is told about an event that cannot be read: code, param and words."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from realtime.protocol.audio_bytes import MAX_AUDIO_BYTES
from realtime.protocol.decode import decode
from realtime.protocol.event_schema import EVENT_SCHEMAS
from realtime.protocol.json_text import MAX_DEPTH, MAX_MARKS
from realtime.protocol.messages import AppendAudio
from realtime.session.events import ClientRefused, ClientSessionUpdate


def refused(message: str | bytes | dict[str, Any]) -> ClientRefused:
    text = json.dumps(message) if isinstance(message, dict) else message
    answer = decode(text)
    assert isinstance(answer, ClientRefused), answer
    assert answer.type == "invalid_request_error"
    return answer


def update(**session: Any) -> dict[str, Any]:
    return {"type": "session.update", "session": session}


def create(**item: Any) -> dict[str, Any]:
    return {"type": "conversation.item.create", "item": item}


def respond(**response: Any) -> dict[str, Any]:
    return {"type": "response.create", "response": response}


def truncate(**fields: Any) -> dict[str, Any]:
    where = {"item_id": "item_1", "content_index": 0, "audio_end_ms": 100}
    return {"type": "conversation.item.truncate", **where, **fields}


def message(*content: Any, role: str = "user") -> dict[str, Any]:
    return create(type="message", role=role, content=list(content))


def test_an_unknown_type_names_the_known_ones() -> None:
    answer = refused({"type": "x", "event_id": "mine"})
    assert (answer.code, answer.param, answer.event_id) == ("invalid_value", "type", "mine")
    assert answer.message.startswith("Invalid value: 'x'. Supported values are: 'session.update', ")
    assert all(f"'{kind}'" in answer.message for kind in EVENT_SCHEMAS)


def test_a_missing_type() -> None:
    answer = refused({"event_id": "mine"})
    assert (answer.code, answer.param, answer.event_id) == ("invalid_event", None, "mine")
    assert answer.message == "The 'type' field is missing."


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "invalid_json"),
        ("{", "invalid_json"),
        ('{"type":"response.create"} {}', "invalid_json"),
        ("{'type':'response.create'}", "invalid_json"),
        ('{"type":"response.create","x":NaN}', "invalid_json"),
        ('{"type":"response.create","x":-Infinity}', "invalid_json"),
        ('{"type":"response.create","x":1e999}', "invalid_json"),
        ('{"type":"response.create","type":"response.cancel"}', "invalid_json"),
        ('{"type":"response.create","x":"\\ud800"}', "invalid_json"),
        ('{"type":"response.create","\\udc00":1}', "invalid_json"),
        ('{"type":"response.create","x":"\ud800"}', "invalid_json"),
        ('{"x":' + "9" * 10_000 + "}", "invalid_json"),
        ("[" * (MAX_MARKS - 1), "invalid_json"),
        ("[" * 100_000, "invalid_value"),
        ('{"x":' * 5_000 + "1" + "}" * 5_000, "invalid_json"),
        ('{"x":' * MAX_DEPTH + "{}" + "}" * MAX_DEPTH, "invalid_json"),
        ('{"x":[' + "0," * MAX_MARKS + "0]}", "invalid_value"),
        ("[" + '"",' * MAX_MARKS + '""]', "invalid_value"),
        ('""' * (MAX_MARKS + 1) + "," * MAX_MARKS + ",", "invalid_value"),
        ("[]", "invalid_event"),
        ("null", "invalid_event"),
        ('"response.create"', "invalid_event"),
        ("17", "invalid_event"),
    ],
)
def test_what_is_no_event_at_all(text: str, code: str) -> None:
    answer = refused(text)
    assert (answer.code, answer.param, answer.event_id) == (code, None, None)
    assert len(answer.message) < 200


def test_an_escaped_pair_is_one_character() -> None:
    answer = decode(
        '{"type":"session.update","session":{"type":"realtime","instructions":"\\ud83d\\ude00"}}'
    )
    assert isinstance(answer, ClientSessionUpdate)
    assert ("instructions", "\U0001f600") in answer.patch.values


def test_a_binary_frame() -> None:
    answer = refused(b'{"type":"response.create"}')
    assert (answer.code, answer.param) == ("invalid_event", None)


MISSING = [
    (update(), "session.type"),
    ({"type": "session.update"}, "session"),
    (update(modalities=["text"]), "session.type"),
    (update(type="realtime", tools=[{"name": "f"}]), "session.tools[0].type"),
    (update(type="realtime", tools=[{"type": "function"}]), "session.tools[0].name"),
    (
        update(type="realtime", audio={"input": {"turn_detection": {}}}),
        "session.audio.input.turn_detection.type",
    ),
    (
        update(type="realtime", audio={"output": {"format": {"rate": 24_000}}}),
        "session.audio.output.format.type",
    ),
    (update(type="realtime", tool_choice={"type": "function"}), "session.tool_choice.name"),
    ({"type": "input_audio_buffer.append"}, "audio"),
    ({"type": "conversation.item.create"}, "item"),
    (create(), "item.type"),
    (create(type="message"), "item.role"),
    (create(type="message", role="user"), "item.content"),
    (message({"text": "hi"}), "item.content[0].type"),
    (message({"type": "input_text"}), "item.content[0].text"),
    (message({"type": "input_audio"}), "item.content[0].audio"),
    (message({"type": "output_text"}, role="assistant"), "item.content[0].text"),
    (create(type="function_call", name="f"), "item.arguments"),
    (create(type="function_call_output", output="1"), "item.call_id"),
    ({"type": "conversation.item.retrieve"}, "item_id"),
    ({"type": "conversation.item.delete"}, "item_id"),
    ({"type": "conversation.item.truncate", "item_id": "i", "content_index": 0}, "audio_end_ms"),
    (respond(input=[{"type": "item_reference"}]), "response.input[0].id"),
]


@pytest.mark.parametrize(("event", "param"), MISSING)
def test_a_missing_parameter(event: dict[str, Any], param: str) -> None:
    answer = refused(event)
    assert (answer.code, answer.param) == ("missing_required_parameter", param)
    assert answer.message == f"Missing required parameter: '{param}'."


BETA_SESSION = (
    "modalities",
    "voice",
    "input_audio_format",
    "output_audio_format",
    "input_audio_transcription",
    "turn_detection",
    "input_audio_noise_reduction",
    "temperature",
    "max_response_output_tokens",
)
UNKNOWN = [
    *((update(type="realtime", **{name: None}), f"session.{name}") for name in BETA_SESSION),
    (update(type="transcription", instructions="x"), "session.instructions"),
    (update(type="transcription", audio={"output": {}}), "session.audio.output"),
    (respond(modalities=["text"]), "response.modalities"),
    (respond(voice="x"), "response.voice"),
    (respond(audio={"output": {"speed": 1}}), "response.audio.output.speed"),
    (
        update(
            type="realtime",
            audio={"input": {"turn_detection": {"type": "semantic_vad", "idle_timeout_ms": 9}}},
        ),
        "session.audio.input.turn_detection.idle_timeout_ms",
    ),
    ({"type": "input_audio_buffer.commit", "item_id": "x"}, "item_id"),
    (message({"type": "input_text", "text": "x", "lang": "en"}), "item.content[0].lang"),
]


@pytest.mark.parametrize(("event", "param"), UNKNOWN)
def test_an_unknown_parameter(event: dict[str, Any], param: str) -> None:
    answer = refused(event)
    assert (answer.code, answer.param) == ("unknown_parameter", param)
    assert answer.message == f"Unknown parameter: '{param}'."


def audio_input(**fields: Any) -> dict[str, Any]:
    return update(type="realtime", audio={"input": fields})


def audio_output(**fields: Any) -> dict[str, Any]:
    return update(type="realtime", audio={"output": fields})


INVALID = [
    (update(type="x"), "session.type", "'realtime' and 'transcription'"),
    (update(type="realtime", output_modalities=["video"]), "session.output_modalities[0]", "audio"),
    (update(type="realtime", output_modalities=[]), "session.output_modalities", "combinations"),
    (update(type="realtime", max_output_tokens=0), "session.max_output_tokens", "1 to 4096"),
    (update(type="realtime", max_output_tokens=4097), "session.max_output_tokens", "'inf'"),
    (update(type="realtime", tool_choice="any"), "session.tool_choice", "'auto', 'none'"),
    (update(type="realtime", tool_choice={"type": "mcp"}), "session.tool_choice.type", "MCP"),
    (update(type="realtime", tools=[{"type": "mcp"}]), "session.tools[0].type", "MCP"),
    (
        update(type="realtime", tools=[{"type": "function", "name": "f"}] * 2),
        "session.tools[1].name",
        "'f'",
    ),
    *(
        (
            update(type="realtime", tools=[{"type": "function", "name": word}]),
            "session.tools[0].name",
            "'tool_choice'",
        )
        for word in ("auto", "none", "required")
    ),
    (
        update(type="realtime", tool_choice={"type": "function", "name": "x" * 129}),
        "session.tool_choice.name",
        "at most 128",
    ),
    (update(type="realtime", prompt={"id": "p"}), "session.prompt", "'instructions'"),
    (update(type="realtime", tracing="on"), "session.tracing", "'auto'"),
    (update(type="realtime", truncation="some"), "session.truncation", "'disabled'"),
    (update(type="realtime", include=["x"]), "session.include[0]", "logprobs"),
    (audio_output(speed=2), "session.audio.output.speed", "1.5"),
    (audio_output(speed=0.1), "session.audio.output.speed", "0.25"),
    (audio_output(format={"type": "audio/mp3"}), "session.audio.output.format.type", "audio/pcmu"),
    (
        audio_output(format={"type": "audio/pcm", "rate": 44_100}),
        "session.audio.output.format.rate",
        "'24000', '8000', '16000', and '48000'",
    ),
    (
        audio_input(format={"type": "audio/opus", "rate": 44_100}),
        "session.audio.input.format.rate",
        "'48000', '24000', '16000', '12000', and '8000'",
    ),
    (audio_input(format={"type": "opus"}), "session.audio.input.format.type", "audio/opus"),
    (
        audio_input(format={"type": "audio/pcmu", "rate": 24_000}),
        "session.audio.input.format.rate",
        "8000",
    ),
    (
        audio_input(turn_detection={"type": "none"}),
        "session.audio.input.turn_detection.type",
        "'server_vad' and 'semantic_vad'",
    ),
    (
        audio_input(turn_detection={"type": "server_vad", "threshold": 2}),
        "session.audio.input.turn_detection.threshold",
        "at most 1",
    ),
    (
        audio_input(turn_detection={"type": "server_vad", "silence_duration_ms": 10**40}),
        "session.audio.input.turn_detection.silence_duration_ms",
        "at most",
    ),
    (
        audio_input(turn_detection={"type": "semantic_vad", "eagerness": "max"}),
        "session.audio.input.turn_detection.eagerness",
        "'low', 'medium', 'high', and 'auto'",
    ),
    (message(role="tool"), "item.role", "'assistant'"),
    (message({"type": "text", "text": ""}), "item.content[0].type", "'input_text'"),
    (message({"type": "output_audio"}, role="assistant"), "item.content[0].type", "output_text"),
    (message({"type": "input_audio", "audio": "%"}), "item.content[0].audio", "base64"),
    (message({"type": "input_image", "image_url": "http://x"}), "item.content[0].image_url", "URI"),
    (create(type="mcp_approval_response"), "item.type", "MCP"),
    (create(type="item_reference", id="i"), "item.type", "response.create"),
    (create(type="message", role="user", content=[], id="root"), "item.id", "'root'"),
    (create(type="message", role="user", content=[], status="done"), "item.status", "completed"),
    (respond(conversation="conv_1"), "response.conversation", "'auto' and 'none'"),
    (respond(metadata={str(n): "" for n in range(17)}), "response.metadata", "16"),
    (respond(metadata={"k" * 65: ""}), "response.metadata", "64"),
    (respond(metadata={"k": "v" * 513}), "response.metadata.k", "512"),
    (
        respond(
            input=[
                {"type": "item_reference", "id": "i"},
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_audio", "audio": "AAAA"}],
                },
            ]
        ),
        "response.input[1].content[0].audio",
        "item_reference",
    ),
    (truncate(audio_end_ms=-1), "audio_end_ms", "at least 0"),
    (truncate(content_index=10**30), "content_index", "at most"),
    (truncate(item_id=""), "item_id", "at least 1"),
    ({"type": "output_audio_buffer.clear"}, "type", "WebRTC"),
    ({"type": "transcription_session.update"}, "type", "'session.update'"),
    ({"type": "input_audio_buffer.append", "audio": "AA"}, "audio", "base64-encoded audio bytes"),
    ({"type": "input_audio_buffer.append", "audio": "AA\nAA"}, "audio", "base64"),
    ({"type": "input_audio_buffer.append", "audio": "é"}, "audio", "base64"),
]


@pytest.mark.parametrize(("event", "param", "said"), INVALID)
def test_an_invalid_value(event: dict[str, Any], param: str, said: str) -> None:
    answer = refused(event)
    assert (answer.code, answer.param) == ("invalid_value", param)
    assert said in answer.message


def test_both_modalities_at_once() -> None:
    answer = refused(update(type="realtime", output_modalities=["text", "audio"]))
    assert (answer.code, answer.param) == ("invalid_value", "session.output_modalities")
    assert answer.message == (
        "Invalid modalities: ['audio', 'text']. Supported combinations are: ['text'] and ['audio']."
    )


WRONG_TYPE = [
    ({"type": 5}, "type", "a string", "an integer"),
    ({"type": "response.cancel", "event_id": 5}, "event_id", "a string", "an integer"),
    ({"type": "session.update", "session": None}, "session", "an object", "null"),
    (update(type="realtime", instructions=["x"]), "session.instructions", "a string", "an array"),
    (update(type="realtime", tools={}), "session.tools", "an array", "an object"),
    (audio_output(speed="1"), "session.audio.output.speed", "a number", "a string"),
    (audio_output(speed=True), "session.audio.output.speed", "a number", "a boolean"),
    (
        audio_input(turn_detection={"type": "server_vad", "create_response": "yes"}),
        "session.audio.input.turn_detection.create_response",
        "a boolean",
        "a string",
    ),
    (truncate(audio_end_ms=1.5), "audio_end_ms", "an integer", "a decimal number"),
    (truncate(audio_end_ms="1"), "audio_end_ms", "an integer", "a string"),
    ({"type": "input_audio_buffer.append", "audio": 1}, "audio", "a base64 string", "an integer"),
    (respond(metadata={"a": 1}), "response.metadata.a", "a string", "an integer"),
    (message(None), "item.content[0]", "an object", "null"),
]


@pytest.mark.parametrize(("event", "param", "expected", "got"), WRONG_TYPE)
def test_a_wrong_type(event: dict[str, Any], param: str, expected: str, got: str) -> None:
    answer = refused(event)
    assert (answer.code, answer.param) == ("invalid_type", param)
    assert answer.message == (
        f"Invalid type for '{param}': expected {expected}, but got {got} instead."
    )


def test_every_refusal_names_the_event_that_it_refuses() -> None:
    for event, *_ in [*MISSING, *UNKNOWN, *INVALID]:
        assert refused({**event, "event_id": "agents_py_response_create_1"}).event_id == (
            "agents_py_response_create_1"
        )


def test_an_event_id_too_long_to_echo_is_not_echoed() -> None:
    answer = refused({"type": "response.create", "event_id": "x" * 513})
    assert (answer.code, answer.param, answer.event_id) == ("invalid_value", "event_id", None)


def test_messages_stay_short_whatever_came() -> None:
    flood = "x" * 1_000_000
    for event in (
        {"type": flood},
        update(type="realtime", **{flood: 1}),
        update(type=flood),
        {"type": "input_audio_buffer.append", "audio": flood + "%"},
    ):
        answer = refused(event)
        assert len(answer.message) + len(answer.param or "") < 1_000


def test_an_append_may_carry_15_mib_and_no_more() -> None:
    fits = base64.b64encode(bytes(MAX_AUDIO_BYTES)).decode()
    answer = decode(f'{{"type":"input_audio_buffer.append","audio":"{fits}"}}')
    assert isinstance(answer, AppendAudio)
    assert len(answer.audio) == MAX_AUDIO_BYTES
    too_long = refused(f'{{"type":"input_audio_buffer.append","audio":"{fits}AAAA"}}')
    assert (too_long.code, too_long.param) == ("invalid_value", "audio")
    assert "15 MiB" in too_long.message
