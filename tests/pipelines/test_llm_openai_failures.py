"""The remote writer against a real HTTP server on loopback that misbehaves."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from pipelines.fakes.chat_server import DONE, STREAM_HEAD, Behaviour, event, hang, replies, streams
from pipelines.stages.llm_openai import OpenAIWriter
from pipelines.stages.llm_openai_client import OpenAIWriterOptions
from pipelines.types import Finished, FinishReason, StageError, TextDelta, Usage
from tests.pipelines.remote_writer import REQUEST, collect, failure, talking_to
from tests.pipelines.waiting import check

GOOD = streams(event(role="assistant"), event(content="Hel"), event(content="lo"),
            event(finish_reason="stop"), DONE)  # fmt: skip


def tells_nothing_of_the_server(error: StageError) -> None:
    """To clients: neither where the model is, nor what was said there."""
    assert error.message.startswith("The language model ")
    assert error.message.endswith(". The server's log says why.")
    assert not any(told in error.message for told in ("://", "127.0.0.1", "nobody", "stages."))
    assert len(error.message) < 150


@pytest.mark.parametrize(
    ("behaviour", "code", "says_what"),
    [
        (replies("401 No", b'{"error":{"message":"bad key"}}'), "llm_unauthorised", "bad key"),
        (replies("403 No"), "llm_unauthorised", "API key"),
        (replies("404 No", b"not here"), "llm_not_found", "/v1"),
        (replies("400 No", b'{"message":"no such field"}'), "llm_refused", "no such field"),
        (replies("400 No", b'{"message":"no tools"}'), "llm_tools_refused", "out of the session"),
        (replies("404 No", b'{"error":"m cannot use tools"}'), "llm_tools_refused", "call tools"),
        (replies("429 No", retry_after="60"), "llm_rate_limited", "429"),
        (replies("429 No"), "llm_rate_limited", "429"),
        (replies("429 No", retry_after="Wed, 21 Oct 2065 07:28:00 GMT"), "llm_rate_limited", ""),
        (replies("500 No", b"x" * 100_000), "llm_server_error", "xxx"),
        (replies("503 No", b'{"detail":"loading"}'), "llm_server_error", "loading"),
        (replies("302 Go", location="http://127.0.0.1:1/"), "llm_nonsense", "302"),
        (replies("200 OK", b"<html>Hi", content_type="text/html"), "llm_nonsense", "<html>Hi"),
        (replies("200 OK", b'{"choices": []}'), "llm_nonsense", "instead of a stream"),
        (replies("200 OK"), "llm_nonsense", "empty body"),
        (streams(b"data: {nonsense\n\n"), "llm_nonsense", "not JSON"),
        (streams(b"data: " + b"[" * 100_000 + b"\n\n"), "llm_nonsense", "not JSON"),
        (streams(b"data: [1, 2]\n\n"), "llm_nonsense", "not an object"),
        (streams(b'data: {"text": "hi"}\n\n'), "llm_nonsense", "without choices"),
        (streams(b'data: {"choices": [7]}\n\n'), "llm_nonsense", "choice"),
        (streams(b"data: " + b"x" * (1 << 21)), "llm_nonsense", "a line of more"),
        (
            streams(b'data: {"error": {"message": "no memory"}}\n\n'),
            "llm_server_error",
            "no memory",
        ),
    ],
)
def test_what_goes_wrong_before_the_first_word(
    behaviour: Behaviour, code: str, says_what: str
) -> None:
    async def main() -> None:
        async with talking_to(behaviour, api_key="secret") as (server, writer):
            outputs, error = await failure(writer)
            assert outputs == []
            assert error.code == code
            assert f"{server.base_url}/chat/completions" in error.detail
            assert says_what in error.detail and "secret" not in error.detail
            assert len(error.detail) < 600
            tells_nothing_of_the_server(error)

    check(main)


def test_a_reply_that_is_whole_does_not_fail_for_want_of_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pipelines.stages.llm_openai.DRAIN_TIMEOUT_S", 0.01)
    answer = streams(event(content="Well."), event(finish_reason="length"), then=hang)

    async def main() -> None:
        async with talking_to(answer) as (_, writer):
            outputs = await collect(writer.open(REQUEST))
            assert outputs == [TextDelta("Well."), Finished(FinishReason.LENGTH)]

    check(main)


def test_counts_that_cannot_be_are_not_passed_on() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": -5,
             "prompt_tokens_details": {"cached_tokens": 99}}  # fmt: skip
    tail = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"

    async def main() -> None:
        async with talking_to(streams(event(finish_reason="stop"), tail, DONE)) as (_, writer):
            assert await collect(writer.open(REQUEST)) == [
                Finished(FinishReason.STOP, Usage(input_tokens=3, cached_tokens=3))
            ]

    check(main)


def test_a_short_retry_after_is_waited_for_once() -> None:
    limited = replies("429 Slow", retry_after="0.01")

    async def main() -> None:
        async with talking_to(limited, GOOD) as (server, writer):
            outputs = await collect(writer.open(REQUEST))
            assert outputs[0] == TextDelta("Hel") and len(server.bodies) == 2
        async with talking_to(limited) as (server, writer):
            _, error = await failure(writer)
            assert error.code == "llm_rate_limited" and len(server.bodies) == 2

    check(main)


def test_a_connection_that_dies_before_its_answer_is_tried_once_more() -> None:
    async def drop(writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def main() -> None:
        async with talking_to(drop, GOOD) as (_, writer):
            assert (await collect(writer.open(REQUEST)))[0] == TextDelta("Hel")
        async with talking_to(drop) as (_, writer):
            _, error = await failure(writer)
            assert error.code == "llm_broke_off"

    check(main)


@pytest.mark.parametrize("how", ["ends", "resets", "bad chunk"])
def test_a_stream_that_breaks_off_in_the_middle(how: str) -> None:
    async def behave(writer: asyncio.StreamWriter) -> None:
        if how == "bad chunk":
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            part = event(content="Well")
            writer.write(head + b"transfer-encoding: chunked\r\n\r\n")
            writer.write(b"%x\r\n%b\r\nZZZ\r\n" % (len(part), part))
        else:
            writer.write(STREAM_HEAD + event(content="Well"))
        await writer.drain()
        if how == "resets":
            await asyncio.sleep(0.05)  # until the client has read what came before
            writer.transport.abort()
        writer.close()

    async def main() -> None:
        async with talking_to(behave) as (_, writer):
            outputs, error = await failure(writer)
            assert outputs == [TextDelta("Well")] and error.code == "llm_broke_off"

    check(main)


def test_silence_before_and_between_tokens_ends_the_request() -> None:
    async def keep_alive(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        while True:
            writer.write(b": ping\n\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    async def main() -> None:
        options = {"first_token_timeout_ms": 60, "token_timeout_ms": 40}
        for behaviour in (
            streams(then=hang),
            keep_alive,
            streams(event(role="assistant"), then=hang),
        ):
            async with talking_to(behaviour, **options) as (_, writer):
                outputs, error = await failure(writer)
                assert (outputs, error.code) == ([], "llm_timeout")
                assert "wrote nothing" in error.detail
        begun = streams(event(content="Well"), then=hang)
        async with talking_to(begun, token_timeout_ms=40) as (_, writer):
            outputs, error = await failure(writer)
            assert (outputs, error.code) == ([TextDelta("Well")], "llm_timeout")

    check(main)


def test_unspoken_reasoning_counts_as_work_until_the_whole_time_is_over() -> None:
    async def reason(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        while True:
            writer.write(event(reasoning_content="hm"))
            await writer.drain()
            await asyncio.sleep(0.005)

    async def main() -> None:
        options = {"first_token_timeout_ms": 100, "reply_timeout_ms": 400}
        async with talking_to(reason, **options) as (_, writer):
            began_s = asyncio.get_running_loop().time()
            outputs, error = await failure(writer)
            assert (outputs, error.code) == ([], "llm_timeout")
            assert asyncio.get_running_loop().time() - began_s >= 0.4

    check(main)


def test_endless_output_is_cut() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        while True:
            writer.write(event(content="blah " * 10))
            await writer.drain()

    async def main() -> None:
        async with talking_to(endless, output_limit_chars=1000) as (_, writer):
            outputs = await collect(writer.open(REQUEST))
            assert outputs[-1] == Finished(FinishReason.LENGTH)
            assert 1000 < sum(len(o.text) for o in outputs if isinstance(o, TextDelta)) < 1100

    check(main)


def test_nobody_there_and_no_such_host(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but not listening: refused
        port = unused.getsockname()[1]

        async def main() -> None:
            for url, what in [
                (f"http://user:secret@127.0.0.1:{port}/v1", "server runs"),
                ("http://nobody.invalid/v1/", "host name nobody.invalid is unknown"),
            ]:
                writer = OpenAIWriter(OpenAIWriterOptions(base_url=url, model="m"))
                await writer.start(lambda line: None)
                (warning,) = caplog.messages  # at the start, which does not fail
                caplog.clear()
                _, error = await failure(writer)
                assert error.code == "llm_unreachable"
                for told in (error.detail, warning):
                    assert what in told and "secret" not in told
                    assert "stages.writer.url or PARLEY_LLM_URL" in told
                tells_nothing_of_the_server(error)
                await writer.close()

        check(main)


@pytest.mark.parametrize("url", ["127.0.0.1:8000/v1", "ftp://x/v1", "http://", "http://x:port/v1"])
def test_a_bad_url_stops_the_start(url: str) -> None:
    async def main() -> None:
        writer = OpenAIWriter(OpenAIWriterOptions(base_url=url, model="m"))
        with pytest.raises(StageError) as raised:
            await writer.start(lambda line: None)
        assert raised.value.code == "llm_misconfigured"
        await writer.close()

    check(main)
