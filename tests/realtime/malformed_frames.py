"""Frames that are no events, or that carry too much: their answers."""

from __future__ import annotations

import base64
import json

from realtime.protocol.audio_bytes import MAX_AUDIO_BYTES
from realtime.protocol.event_schema import MAX_UPDATE_CHARACTERS
from realtime.protocol.json_text import MAX_DEPTH, MAX_MARKS
from tests.realtime.malformed_case import (
    DELETE,
    FUNCTION,
    JSON,
    MINE,
    MISSING,
    RETRIEVE,
    TEXT,
    TYPE,
    UNKNOWN,
    USER,
    VALUE,
    Case,
    append,
    create,
    event,
    message,
    raw,
    respond,
    speaking,
    update,
)

NOTHING = json.dumps({"type": "response.cancel", "event_id": MINE})[:-1]  # to be gone on with

NO_EVENTS = [
    raw("empty text", "", JSON, "Expecting value"),
    raw("space", " \n", JSON, "Expecting value"),
    raw("no JSON", "hello", JSON, "Expecting value"),
    raw("cut off early", '{"type":"response.cre', JSON, "Unterminated"),
    raw("cut off behind its id", NOTHING, JSON, "delimiter", MINE),
    raw("single quotes", "{'type':'response.create'}", JSON, "double quotes"),
    raw("a comma too many", NOTHING + ",}", JSON, "double quotes", MINE),
    raw("two events in one", NOTHING + "} {}", JSON, "Extra data", MINE),
    raw("a byte order mark", "\ufeff" + NOTHING + "}", JSON, "Expecting value"),
    raw("NaN", NOTHING + ',"response_id":NaN}', JSON, "NaN is not a JSON value", MINE),
    raw("infinity", NOTHING + ',"response_id":-Infinity}', JSON, "-Infinity", MINE),
    raw("beyond a double", NOTHING + ',"response_id":1e999}', JSON, "beyond", MINE),
    raw("5000 digits", NOTHING + ',"response_id":' + "9" * 5000 + "}", JSON, "digits", MINE),
    raw("the same key twice", NOTHING + ',"type":"x"}', JSON, "'type' twice", MINE),
    raw("two ids", NOTHING + ',"event_id":"other"}', JSON, "'event_id' twice"),
    raw("the same key twice inside", NOTHING + ',"x":{"a":1,"a":2}}', JSON, "'a' twice", MINE),
    raw("half a character", NOTHING + ',"response_id":"\\ud800"}', JSON, "surrogate", MINE),
    raw("half a character in a key", NOTHING + ',"\\udc00":1}', JSON, "surrogate", MINE),
    raw("half a character in the id", '{"event_id":"\\ud800"}', JSON, "surrogate"),
    raw("a control character", NOTHING + ',"x":"\n"}', JSON, "control character", MINE),
    raw("a wrong escape", NOTHING + ',"x":"\\q"}', JSON, "escape", MINE),
    raw("deeper than allowed", NOTHING + ',"x":' + "[" * 99 + "]" * 99 + "}", JSON, "deep", MINE),
    raw("deeper than any stack", '{"x":' + "[" * 40_000, JSON, "deep"),
    raw("too many brackets", NOTHING + ',"x":[' + "0," * MAX_MARKS + "0]}", VALUE, "commas", MINE),
    raw("an array", '[{"type":"response.create"}]', "invalid_event", "an array"),
    raw("a string", '"response.create"', "invalid_event", "a string"),
    raw("a number", "17", "invalid_event", "an integer"),
    raw("null", "null", "invalid_event", "null"),
    raw("true", "true", "invalid_event", "a boolean"),
    raw("bytes", b"\x00\xff\x00", "invalid_event", "Binary"),
    raw("no bytes", b"", "invalid_event", "Binary"),
    raw("an event as bytes", (NOTHING + "}").encode(), "invalid_event", "Binary", MINE),
    raw("no type", '{"event_id":"evt_mine"}', "invalid_event", "'type' field is missing", MINE),
]


def too_much_audio() -> str:
    audio = base64.b64encode(bytes(MAX_AUDIO_BYTES + 1)).decode()
    return json.dumps({"type": "input_audio_buffer.append", "event_id": MINE, "audio": audio})


AUDIO = [
    append("no audio", None, TYPE, "a base64 string"),
    append("audio of numbers", [0, 1], TYPE, "an array"),
    append("the alphabet of URLs", "-_-_"),
    append("no padding", "AAA"),
    append("padding in the middle", "AA==AAAA"),
    append("a line break", "AAAA\nAAAA"),
    append("a space", "AA AA"),
    append("a data URI", "data:audio/pcm;base64,AAAA"),
    append("letters beyond ASCII", "Zażółć gęślą"),
    Case("15 MiB and a byte", too_much_audio, VALUE, "audio", "15 MiB"),
    message(VALUE, "content[0].audio", "base64", {"type": "input_audio", "audio": "%"}),
    message(MISSING, "content[0].audio", "audio", {"type": "input_audio"}),
]

LONG = "x" * 200
DEEP = json.loads("[" * (MAX_DEPTH - 4) + "]" * (MAX_DEPTH - 4))
SIZES = [
    Case(
        "a long id",
        lambda: json.dumps({"type": "response.cancel", "event_id": "x" * 513}),
        VALUE,
        "event_id",
        "at most 512",
        None,
    ),
    respond(VALUE, "metadata", "16 pairs", metadata={str(n): "" for n in range(17)}),
    respond(VALUE, "metadata", "64 characters", metadata={"k" * 65: ""}),
    respond(VALUE, "metadata.k", "512 characters", metadata={"k": "v" * 513}),
    update(
        VALUE,
        "session.tools",
        "at most 128 entries",
        tools=[{"type": "function", "name": f"f{n}"} for n in range(10_000)],
    ),
    Case(
        "instructions of megabytes",
        lambda: json.dumps(
            {
                "type": "session.update",
                "event_id": MINE,
                "session": {"type": "realtime", "instructions": "x" * 2 * 2**20},
            }
        ),
        VALUE,
        None,
        f"{MAX_UPDATE_CHARACTERS} characters",
    ),
    Case(
        "a text too large to send back",
        lambda: json.dumps(
            {
                "type": "conversation.item.create",
                "event_id": MINE,
                "item": {**USER, "content": [{**TEXT, "text": "ł" * 2 * 2**20}]},
            },
            ensure_ascii=False,
        ),
        VALUE,
        "item",
        "bytes of JSON",
    ),
    speaking(VALUE, "voice", "at most 256", voice="x" * 257),
    create(VALUE, "item.name", "at most 128", type="function_call", name=LONG, arguments="{}"),
    event(RETRIEVE, VALUE, "item_id", "at most 128", item_id=LONG),
    event(DELETE, VALUE, "item_id", "at least 1", item_id=""),
    event("response.cancel", VALUE, "response_id", "at most 128", response_id=LONG),
    event(
        "conversation.item.create",
        VALUE,
        "previous_item_id",
        "at most 128",
        item={**USER, "content": []},
        previous_item_id=LONG,
    ),
    event("x" * 100_000, VALUE, "type", "Supported values", "a long type"),
    Case("a long key", lambda: f'{NOTHING},"{LONG}":1}}', UNKNOWN, f"{'x' * 80}...", "Unknown"),
    update(UNKNOWN, "session.tools[0].deep", "Unknown", tools=[{**FUNCTION, "deep": DEEP}]),
]
