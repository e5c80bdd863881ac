"""Conversations that are longer than a remote model can read."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from pipelines.fakes.chat_server import DONE, Behaviour, event, replies, streams
from pipelines.stages.llm_openai_wire import is_context_error
from pipelines.types import Finished, FinishReason, Message, StageError, Truncation, WriteRequest
from tests.pipelines.remote_writer import collect, talking_to
from tests.pipelines.waiting import check, until

GOOD = streams(event(content="Hello"), event(finish_reason="stop"), DONE)
SYSTEM = Message("system", "Be brief.")
TALK = tuple(
    Message("assistant" if number % 2 else "user", f"{number} " + "word " * 20)
    for number in range(41)
)
REQUEST = WriteRequest("r", (SYSTEM, *TALK))
REFUSALS = (
    {"error": {"code": "context_length_exceeded", "message": "Too much."}},
    {"error": {"message": "This model's maximum context length is 4096 tokens."}},
    {"error": {"message": "the request exceeds the available context size"}},
    {"message": "Prompt is too long: 9000 tokens"},
    {"message": "The decoder prompt (length 9) is longer than the maximum model length of 8."},
    {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096."},
    {"error": "inputs tokens + max_new_tokens must be <= 4096. Given: 5000 and 100"},
    {"error": "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000"},
    {
        "error": {
            "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."
        }
    },
    {"error": {"message": "input length and `max_tokens` exceed context limit: 9 + 9 > 10"}},
    {"error": {"message": "Please reduce the length of the messages or completion."}},
)


def too_long(body: object = REFUSALS[0], status: int = 400) -> Behaviour:
    return replies(f"{status} No", json.dumps(body).encode())


def sent(body: dict[str, Any]) -> list[str]:
    """The numbers of the turns that a request holds."""
    return [message["content"].split()[0] for message in body["messages"][1:]]


def test_the_oldest_turns_are_dropped_until_the_server_takes_the_rest() -> None:
    async def main() -> None:
        async with talking_to(too_long(), too_long(), GOOD) as (server, writer):
            outputs = await collect(writer.open(REQUEST))
            assert isinstance(outputs[-1], Finished)
            assert outputs[-1].reason is FinishReason.STOP
            numbers = [sent(body) for body in server.bodies]
            assert [len(turns) for turns in numbers] == sorted(map(len, numbers), reverse=True)
            assert len(numbers[0]) == 41 and len(numbers[1]) > len(numbers[2])
            assert all(turns[-1] == "40" for turns in numbers)
            assert all(body["messages"][0]["content"] == "Be brief." for body in server.bodies)
            # What the model can read is known now, and the cut stays.
            more = (*TALK, Message("assistant", "ok"), Message("user", "and?"))
            await collect(writer.open(replace(REQUEST, messages=(SYSTEM, *more))))
            assert len(server.bodies) == 4
            assert sent(server.bodies[3])[:-2] == numbers[2]

    check(main)


@pytest.mark.parametrize("body", REFUSALS)
@pytest.mark.parametrize("status", [400, 413, 422])
def test_without_truncation_the_refusal_has_the_code_that_clients_know(
    body: object, status: int
) -> None:
    async def main() -> None:
        async with talking_to(too_long(body, status)) as (server, writer):
            for truncation in (Truncation(may_drop=False), Truncation()):
                request = replace(REQUEST, truncation=truncation, messages=(SYSTEM, TALK[0]))
                with pytest.raises(StageError) as failure:
                    await collect(writer.open(request))
                assert failure.value.code == "context_length_exceeded"
            assert len(server.bodies) == 2, "one message is all that there is to send"

    check(main)


def test_a_refusal_inside_the_stream_is_one_too() -> None:
    body = json.dumps(REFUSALS[1]).encode()

    async def main() -> None:
        async with talking_to(streams(b"data: " + body + b"\n\n"), GOOD) as (server, writer):
            assert await collect(writer.open(REQUEST))
            assert len(server.bodies) == 2

    check(main)


def test_a_server_that_takes_nothing_is_not_asked_for_ever() -> None:
    async def main() -> None:
        async with talking_to(too_long()) as (server, writer):
            with pytest.raises(StageError) as failure:
                await collect(writer.open(REQUEST))
            assert failure.value.code == "context_length_exceeded"
            assert len(server.bodies) <= 4

    check(main)


def test_what_a_server_refused_to_the_end_says_nothing_of_other_conversations() -> None:
    """It may have been the tools, or a server that refuses everything for a while."""

    async def main() -> None:
        async with talking_to(*[too_long()] * 4, GOOD) as (server, writer):
            with pytest.raises(StageError):
                await collect(writer.open(REQUEST))
            asked = len(server.bodies)
            assert asked == 4
            await collect(writer.open(REQUEST))
            assert sent(server.bodies[asked]) == sent(server.bodies[0])

    check(main)


def test_while_a_cut_request_is_unanswered_others_are_sent_whole() -> None:
    answer = asyncio.Event()

    async def wait(connection: asyncio.StreamWriter) -> None:
        await answer.wait()
        await GOOD(connection)

    async def main() -> None:
        async with talking_to(too_long(), wait, GOOD) as (server, writer):
            first = asyncio.ensure_future(collect(writer.open(REQUEST)))
            await until(lambda: len(server.bodies) == 2)
            await collect(writer.open(REQUEST))
            assert len(sent(server.bodies[2])) == 41 > len(sent(server.bodies[1]))
            answer.set()
            await first
            await collect(writer.open(REQUEST))
            assert sent(server.bodies[3]) == sent(server.bodies[1])

    check(main)


def test_a_limit_on_the_messages_is_kept_by_estimate() -> None:
    limited = Truncation(keep_share=0.8, limit_tokens=400)

    async def main() -> None:
        async with talking_to(GOOD) as (server, writer):
            for end in range(1, 42, 4):
                messages = (SYSTEM, *TALK[:end])
                request = replace(REQUEST, messages=messages, truncation=limited)
                await collect(writer.open(request))
            assert len(server.bodies) == 11
            texts = [[m["content"] for m in body["messages"][1:]] for body in server.bodies]
            assert all(sum(len(text) for text in turn) <= 4 * 400 for turn in texts)
            assert sent(server.bodies[0]) == ["0"] and sent(server.bodies[-1])[-1] == "40"
            starts = [int(sent(body)[0]) for body in server.bodies]
            assert 0 < len(set(starts)) < len(starts), "a cut serves several turns"

    check(main)


def test_other_refusals_are_no_reason_to_drop_anything() -> None:
    async def main() -> None:
        async with talking_to(too_long({"error": "tools are not supported"})) as (server, writer):
            with pytest.raises(StageError) as failure:
                await collect(writer.open(REQUEST))
            assert failure.value.code == "llm_refused" and len(server.bodies) == 1

    check(main)


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 50000. The maximum context length is 4096 tokens.",
        "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context "
        "length is 4096 tokens and your request has 100 input tokens.",
    ],
)
def test_an_answer_that_may_be_too_long_is_no_reason_either(message: str) -> None:
    assert not is_context_error(json.dumps({"error": {"message": message}}))
    assert not is_context_error(message)
