"""The remote writer against a real HTTP server on loopback that behaves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pipelines import ports
from pipelines.fakes.chat_server import DONE, event, hang, replies, streams
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
    Usage,
    WriteRequest,
)
from tests.pipelines.remote_writer import REQUEST, collect, talking_to
from tests.pipelines.waiting import check, until

GOOD = streams(event(role="assistant"), event(content="Hel"), event(content="lo"),
            event(finish_reason="stop"), DONE)  # fmt: skip


def test_streams_text_and_usage() -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 3,
             "prompt_tokens_details": {"cached_tokens": 8}}  # fmt: skip
    tail = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
    answer = streams(b": comment\n\n", event(content="Hel"), event(content="lo"),
                  event(finish_reason="length"), tail, DONE)  # fmt: skip

    async def main() -> None:
        async with talking_to(answer, api_key="k", extra_body={"top_k": 5}) as (server, writer):
            as_port: ports.Writer = writer
            outputs = await collect(as_port.open(REQUEST))
            assert outputs == [
                TextDelta("Hel"),
                TextDelta("lo"),
                Finished(FinishReason.LENGTH, Usage(12, 8, 3)),
            ]
            assert server.heads[0].startswith("POST /v1/chat/completions HTTP/1.1")
            assert "authorization: bearer k" in server.heads[0].lower()
            assert server.bodies[0]["model"] == "m" and server.bodies[0]["top_k"] == 5
            assert server.bodies[0]["stream"] is True

    check(main)


def test_events_may_be_split_anywhere() -> None:
    raw = 'data: {"choices": [{"delta": {"content": "é世"}}]}\r\n\r\n'.encode()
    whole = event(content="grüße 😀") + raw + event(finish_reason="stop")
    pieces = [whole[n : n + 1] for n in range(len(whole))]

    async def main() -> None:
        async with talking_to(streams(*pieces)) as (_, writer):
            outputs = await collect(writer.open(REQUEST))
            assert outputs[:2] == [TextDelta("grüße 😀"), TextDelta("é世")]

    check(main)


def test_the_whole_request_is_passed_on() -> None:
    request = WriteRequest(
        "r",
        (
            Message("system", "Be brief."),
            Message("assistant", "", (ToolCall("c1", "look", '{"a":1}'),)),
            Message("tool", "42", call_id="c1"),
        ),
        tools=(ToolSpec("look", "Looks.", '{"type":"object"}'),),
        tool_choice="look",
        max_output_tokens=50,
        temperature=0.3,
    )

    async def main() -> None:
        made = streams(event(tool_calls=[call(0, "c2", "look", "{}")]), DONE)
        async with talking_to(made, extra_body={"stream_options": None}) as (server, writer):
            assert await collect(writer.open(request))
            body = server.bodies[0]
            assert "stream_options" not in body
            assert body["max_tokens"] == 50 and body["temperature"] == 0.3
            assert body["tools"][0]["function"]["parameters"] == {"type": "object"}
            assert body["tool_choice"] == {"type": "function", "function": {"name": "look"}}
            assert body["messages"][0] == {"role": "system", "content": "Be brief."}
            assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"a":1}'
            assert body["messages"][2] == {"role": "tool", "content": "42", "tool_call_id": "c1"}

    check(main)


def call(index: int, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}


def test_tool_calls_keep_their_pieces_apart() -> None:
    answer = streams(
        event(tool_calls=[call(0, "a", "look", "")]),
        event(tool_calls=[call(0, None, None, '{"x"')]),
        event(tool_calls=[call(0, "a", None, ":1}")]),
        event(tool_calls=[call(0, "b", "find", "{}")]),  # a new call under an old index
        event(tool_calls=[call(3, None, "noid", "{}")]),
        event(finish_reason="tool_calls"),
    )

    async def main() -> None:
        async with talking_to(answer) as (_, writer):
            outputs = await collect(writer.open(REQUEST))
            assert outputs[:-1] == [
                ToolCallDelta(0, "a", "look", ""),
                ToolCallDelta(0, "", "", '{"x"'),
                ToolCallDelta(0, "", "", ":1}"),
                ToolCallDelta(1, "b", "find", "{}"),
                ToolCallDelta(2, "call_r1_2", "noid", "{}"),
            ]
            assert outputs[-1] == Finished(FinishReason.TOOL_CALLS)

    check(main)


def test_an_end_without_done_after_a_reason_is_an_end() -> None:
    async def main() -> None:
        answer = streams(event(content="Hi"), event(finish_reason="content_filter"))
        async with talking_to(answer) as (_, writer):
            outputs = await collect(writer.open(REQUEST))
            assert outputs == [TextDelta("Hi"), Finished(FinishReason.CONTENT_FILTER)]

    check(main)


def test_200_aborts_leave_no_connection() -> None:
    async def main() -> None:
        behaviour = streams(event(content="Well"), then=hang)
        async with talking_to(behaviour) as (server, writer):
            for number in range(200):
                stream = writer.open(REQUEST)
                for _ in range(number % 7):
                    await asyncio.sleep(0)
                if number % 2:
                    assert await anext(aiter(stream)) == TextDelta("Well")
                stream.abort()
                assert await collect(stream) == []
            await until(lambda: writer.active == 0)
            await until(lambda: server.connections == 0)
            assert writer.abort_latency.count == 200

    check(main)


def test_one_connection_serves_many_replies() -> None:
    body = event(content="Hi") + event(finish_reason="stop") + DONE
    answer = replies("200 OK", body, close=False, content_type="text/event-stream")

    async def main() -> None:
        async with talking_to(answer) as (server, writer):
            for _ in range(5):
                assert (await collect(writer.open(REQUEST)))[0] == TextDelta("Hi")
            assert server.accepted == 1

    check(main)


def test_halves_of_characters_never_leave() -> None:
    def half(text: str) -> bytes:
        return event(content=text)  # json.dumps writes a half as an escape, as such servers do

    cut = event(
        tool_calls=[{"index": 0, "id": "a", "function": {"name": "find", "arguments": "\ud83d"}}]
    )
    rest = event(tool_calls=[{"index": 0, "function": {"arguments": "\ude00"}}])
    answer = streams(half("Nice \ud83d"), half("\ude00 \ude00!"), cut, rest, DONE)

    async def main() -> None:
        async with talking_to(answer) as (_, writer):
            assert (await collect(writer.open(REQUEST)))[:-1] == [
                TextDelta("Nice "),
                TextDelta("\U0001f600 \ufffd!"),
                ToolCallDelta(0, "a", "find", ""),
                ToolCallDelta(0, "", "", "\U0001f600"),
            ]

    check(main)
