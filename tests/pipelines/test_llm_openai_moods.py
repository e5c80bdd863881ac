"""The remote writer against a server whose answers are odd, late, or good at the second try."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pipelines.fakes.chat_server import DONE, Behaviour, event, hang, replies, streams
from pipelines.stages.llm_openai_wire import request_body, retry_after_s
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
    WriteOutput,
    WriteRequest,
)
from tests.pipelines.remote_writer import REQUEST, collect, failure, talking_to
from tests.pipelines.waiting import check

STOP = event(finish_reason="stop")
GOOD = streams(event(content="Hello"), STOP, DONE)


def answer_to(*parts: bytes) -> list[WriteOutput]:
    """What the writer makes of a stream of these events."""
    found: list[WriteOutput] = []

    async def main() -> None:
        async with talking_to(streams(*parts)) as (_, writer):
            found.extend(await collect(writer.open(REQUEST)))

    check(main)
    return found


def text_of(outputs: list[WriteOutput]) -> str:
    return "".join(output.text for output in outputs if isinstance(output, TextDelta))


def call(arguments: Any, name: str | None = "look", call_id: str | None = "a") -> dict[str, Any]:
    return {"index": 0, "id": call_id, "function": {"name": name, "arguments": arguments}}


# ---- odd answers ---------------------------------------------------------------------------------


def test_a_refusal_is_what_the_model_says_and_a_filtered_end() -> None:
    parts = (event(refusal="I can't "), event(refusal="help with that."))
    said = [TextDelta("I can't "), TextDelta("help with that.")]
    for end in (STOP + DONE, DONE, event(finish_reason="content_filter") + DONE):
        assert answer_to(event(role="assistant", refusal=None), *parts, end) == [
            *said,
            Finished(FinishReason.CONTENT_FILTER),
        ]


def test_a_content_filter_without_a_word_is_an_end() -> None:
    assert answer_to(event(finish_reason="content_filter"), DONE) == [
        Finished(FinishReason.CONTENT_FILTER)
    ]


@pytest.mark.parametrize(
    "thoughts",
    [
        [event(reasoning_content="hm"), event(reasoning="so"), event(content="Four.")],
        [event(content="<think>hm"), event(content=" so</thi"), event(content="nk>\nFour.")],
        [event(content="<think>\n\n</think>\n\n"), event(content="Four.")],
        [
            event(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]),
            event(content=[{"type": "text", "text": "Four."}]),
        ],
    ],
)
def test_reasoning_is_neither_said_nor_shown(thoughts: list[bytes]) -> None:
    assert answer_to(*thoughts, STOP, DONE) == [TextDelta("Four."), Finished(FinishReason.STOP)]


def test_text_that_looked_like_reasoning_is_said_in_the_end() -> None:
    assert text_of(answer_to(event(content="a"), event(content=" < b"), STOP)) == "a < b"
    assert text_of(answer_to(event(content="<thin"), STOP, DONE)) == "<thin"


def test_role_only_and_empty_deltas_are_no_output() -> None:
    odd = [event(role="assistant"), event(role="assistant", content=""), event(content=None)]
    odd += [b'data: {"choices": [{"delta": null}]}\n\n', b'data: {"choices": []}\n\n', b"data:\n\n"]
    assert answer_to(*odd, event(content="Hi"), STOP, DONE) == [
        TextDelta("Hi"),
        Finished(FinishReason.STOP),
    ]


def test_keep_alives_and_other_fields_of_events_are_passed_over() -> None:
    noise = b": ping\n\nevent: message\nid: 7\nretry: 10\n"
    outputs = answer_to(noise + event(content="Hi"), noise + STOP, noise + DONE)
    assert outputs == [TextDelta("Hi"), Finished(FinishReason.STOP)]


def test_usage_may_be_absent_null_or_in_every_event() -> None:
    absent = answer_to(event(content="Hi"), STOP, DONE)
    assert absent[-1] == Finished(FinishReason.STOP, Usage())
    body = {"choices": [{"delta": {"content": "Hi"}}], "usage": None}
    null = answer_to(b"data: " + json.dumps(body).encode() + b"\n\n", STOP, DONE)
    assert null[-1] == Finished(FinishReason.STOP, Usage())
    body["usage"] = {"prompt_tokens": 5, "completion_tokens": 1}
    each = answer_to(b"data: " + json.dumps(body).encode() + b"\n\n", STOP, DONE)
    assert each[-1] == Finished(FinishReason.STOP, Usage(5, 0, 1))


def test_an_unknown_reason_is_a_plain_end() -> None:
    assert answer_to(event(content="Hi", finish_reason="eos"))[-1] == Finished(FinishReason.STOP)


def test_calls_between_words_keep_their_place() -> None:
    outputs = answer_to(
        event(content="Let me see. "),
        event(tool_calls=[call('{"a"')]),
        event(content="A moment.", tool_calls=[call(": 1}", None, None)]),
        event(finish_reason="tool_calls"),
        DONE,
    )
    assert outputs == [
        TextDelta("Let me see. "),
        ToolCallDelta(0, "a", "look", '{"a"'),
        TextDelta("A moment."),
        ToolCallDelta(0, "", "", ": 1}"),
        Finished(FinishReason.TOOL_CALLS),
    ]


@pytest.mark.parametrize("arguments", ['{"a": ', "not json", "[1]", '{"a": "\\ud83d"}'])
def test_arguments_that_are_no_json_are_passed_on_as_they_are(arguments: str) -> None:
    outputs = answer_to(event(tool_calls=[call(arguments)]), event(finish_reason="tool_calls"))
    assert outputs[0] == ToolCallDelta(0, "a", "look", arguments)


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('{"a": ', '{"invalid_json": "{\\"a\\": "}'),
        ("[1]", '{"invalid_json": "[1]"}'),
        ("", '{"invalid_json": ""}'),
    ],
)
def test_a_call_that_was_written_badly_is_sent_back_as_an_object(written: str, sent: str) -> None:
    """A server that parses the calls of a prompt would refuse every later turn."""
    message = Message("assistant", "", (ToolCall("a", "look", written),))
    body = request_body(WriteRequest("r", (message,)), "m", {})
    assert body["messages"][0]["tool_calls"][0]["function"]["arguments"] == sent


def test_odd_calls_do_not_stop_an_answer() -> None:
    odd = [event(tool_calls="look"), event(tool_calls=[7, None]), event(tool_calls=[call(None)])]
    outputs = answer_to(*odd, event(content="Hi"), STOP, DONE)
    assert outputs[:-1] == [
        ToolCallDelta(0, "a", "look", ""),
        TextDelta("Hi"),
        ToolCallDelta(0, "", "", "{}"),
    ]


# ---- second tries --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_that_may_recover_is_asked_once_more(status: int) -> None:
    async def main() -> None:
        async with talking_to(replies(f"{status} No"), GOOD) as (server, writer):
            assert text_of(await collect(writer.open(REQUEST))) == "Hello"
            assert len(server.bodies) == 2
        async with talking_to(replies(f"{status} No")) as (server, writer):
            outputs, error = await failure(writer)
            assert outputs == [] and str(status) in error.detail
            assert len(server.bodies) == 2

    check(main)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_server_that_has_made_up_its_mind_is_asked_once(status: int) -> None:
    async def main() -> None:
        async with talking_to(replies(f"{status} No"), GOOD) as (server, writer):
            await failure(writer)
            assert len(server.bodies) == 1

    check(main)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        (
            {
                "date": "Wed, 21 Oct 2015 07:28:00 GMT",
                "retry-after": "Wed, 21 Oct 2015 07:28:02 GMT",
            },
            2.0,
        ),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),  # long ago
        ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
    ],
)
def test_a_server_may_name_its_wait_in_seconds_or_as_a_date(
    headers: dict[str, str], wait_s: float | None
) -> None:
    assert retry_after_s(headers) == wait_s


DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "tries"),
    [
        ({"retry_after": "0.01"}, 2),
        ({"retry_after": "3600"}, 1),
        ({"retry_after": DATE, "date": DATE}, 2),
        ({"retry_after": "Wed, 21 Oct 2015 08:28:00 GMT", "date": DATE}, 1),
        ({}, 2),
    ],
)
def test_a_wait_that_no_caller_bears_is_a_failure_at_once(
    headers: dict[str, str], tries: int
) -> None:
    async def main() -> None:
        async with talking_to(replies("429 Slow", b"", close=True, **headers)) as (server, writer):
            _, error = await failure(writer)
            assert error.code == "llm_rate_limited" and len(server.bodies) == tries

    check(main)


def test_a_connection_that_dies_before_the_first_event_is_tried_once_more() -> None:
    async def reset(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
        writer.write(b"transfer-encoding: chunked\r\n\r\n4\r\n: a\n")
        await writer.drain()
        await asyncio.sleep(0.05)  # until the client has read the head
        writer.transport.abort()

    async def main() -> None:
        async with talking_to(reset, GOOD) as (server, writer):
            assert text_of(await collect(writer.open(REQUEST))) == "Hello"
            assert len(server.bodies) == 2
        async with talking_to(reset) as (server, writer):
            _, error = await failure(writer)
            assert error.code == "llm_broke_off" and len(server.bodies) == 2

    check(main)


# ---- slow bodies ---------------------------------------------------------------------------------


def trickle(head: bytes, byte: bytes) -> Behaviour:
    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(byte)
            await writer.drain()
            await asyncio.sleep(0.005)

    return behave


def test_a_body_that_comes_byte_by_byte_and_says_nothing_ends_in_time() -> None:
    async def main() -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
        for begun in (b"", event(content="Well")):
            behaviour = trickle(head + begun + b"data: ", b"x")
            options = {"token_timeout_ms": 60} if begun else {"first_token_timeout_ms": 80}
            async with talking_to(behaviour, **options) as (_, writer):
                outputs, error = await failure(writer)
                assert error.code == "llm_timeout"
                assert text_of(outputs) == ("Well" if begun else "")

    check(main)


def test_a_status_is_told_though_its_explanation_never_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pipelines.stages.llm_openai_client.DRAIN_TIMEOUT_S", 0.05)

    async def stall(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 401 No\r\ncontent-length: 100\r\n\r\nbad key")
        await writer.drain()
        await hang()

    async def main() -> None:
        async with talking_to(stall) as (_, writer):
            _, error = await failure(writer)
            assert error.code == "llm_unauthorised" and "bad key" in error.detail

    check(main)
