"""Functions, limits and out-of-band responses over the wire, with scripted models."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.writer import Call, End, Fail, FakeWriter, Say, Script, Stall, Use, words
from pipelines.types import FinishReason, StageError, Truncation, Usage
from tests.realtime.rough_calls import TIMING, Caller, call, problem, said

LOOK = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
}
MOMENT = "One moment please while I look that up for you."


def cascade_of(*scripts: Script) -> FakeCascade:
    return FakeCascade(writer=FakeWriter(scripts), timing=TIMING)


def send(caller: Caller, kind: str, **fields: Any) -> None:
    caller.transport.client_sends(json.dumps({"type": kind, "event_id": f"my {kind}", **fields}))


def update(caller: Caller, **session: Any) -> None:
    send(caller, "session.update", session={"type": "realtime", **session})


def types(caller: Caller, text: str) -> None:
    content = [{"type": "input_text", "text": text}]
    item = {"type": "message", "role": "user", "content": content}
    send(caller, "conversation.item.create", item=item)


async def answered(caller: Caller, number: int = 1, **response: Any) -> dict[str, Any]:
    send(caller, "response.create", response=response)
    done = await caller.transport.until("response.done", number, timeout_s=60)
    return done["response"]


def adds_up(usage: dict[str, Any]) -> bool:
    read, written = usage["input_token_details"], usage["output_token_details"]
    return (
        usage["input_tokens"] == read["text_tokens"] + read["audio_tokens"] + read["image_tokens"]
        and usage["output_tokens"] == written["text_tokens"] + written["audio_tokens"]
        and usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
        and read["cached_tokens"] <= usage["input_tokens"]
    )


def test_calls_come_while_speech_goes_on_and_the_answer_follows_the_output() -> None:
    cascade = cascade_of(
        [Say(MOMENT), Call("look", '{"a":'), Call("look", "1}"), Call("find", "{}", "call_2", 1)],
        words("It is sunny."),
    )

    async def talk(caller: Caller) -> None:
        find = {**LOOK, "name": "find"}
        update(caller, tools=[LOOK, find])
        types(caller, "Look.")
        send(caller, "response.create")
        transport = caller.transport
        first = await transport.until("response.function_call_arguments.done")
        assert (first["name"], first["arguments"]) == ("look", '{"a":1}')
        await transport.until("response.function_call_arguments.done", 2)
        seen = caller.transport.types()
        assert "response.output_audio.done" not in seen, "speech goes on"
        assert seen.count("response.function_call_arguments.delta") == 3
        for call_id in (first["call_id"], "call_2"):
            output = {"type": "function_call_output", "call_id": call_id, "output": "sunny"}
            send(caller, "conversation.item.create", item=output)
        send(caller, "response.create")
        refusal = await transport.until("error")
        assert refusal["error"]["code"] == "conversation_already_has_active_response"
        assert refusal["error"]["event_id"] == "my response.create"
        done = await transport.until("response.done", timeout_s=60)
        output = done["response"]["output"]
        assert [item["type"] for item in output] == ["message", *["function_call"] * 2]
        assert said(done["response"]) == [MOMENT]
        second = await answered(caller, 2)
        assert said(second) == ["It is sunny."]
        prompt = cascade.writer.requests[-1].messages
        assert [m.text for m in prompt if m.role == "tool"] == ["sunny", "sunny"]

    call(cascade, talk)


@pytest.mark.parametrize(
    ("session", "param"),
    [
        ({"tool_choice": {"type": "function", "name": "look"}}, "session.tool_choice"),
        ({"tool_choice": "some"}, "session.tool_choice"),
        ({"tool_choice": {"type": "mcp", "server_label": "x"}}, "session.tool_choice.type"),
        ({"tools": [{"type": "function"}]}, "session.tools[0].name"),
        ({"max_output_tokens": 0}, "session.max_output_tokens"),
        ({"max_output_tokens": 4097}, "session.max_output_tokens"),
        ({"truncation": {"type": "retention_ratio"}}, "session.truncation.retention_ratio"),
        ({"parallel_tool_calls": 1}, "session.parallel_tool_calls"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_its_place(
    session: dict[str, Any], param: str
) -> None:
    async def talk(caller: Caller) -> None:
        update(caller, **session)
        refusal = await caller.transport.until("error")
        assert refusal["error"]["param"] == param
        assert refusal["error"]["event_id"] == "my session.update"
        types(caller, "Hello")
        assert (await answered(caller))["status"] == "completed"

    call(cascade_of(words("Yes.")), talk)


def test_choices_are_shown_and_reach_the_writer() -> None:
    cascade = cascade_of(words("Yes."))
    ratio = {
        "type": "retention_ratio",
        "retention_ratio": 0.8,
        "token_limits": {"post_instructions": 900},
    }

    async def talk(caller: Caller) -> None:
        created = await caller.transport.until("session.created")
        assert created["session"]["truncation"] == "auto"
        assert "parallel_tool_calls" not in created["session"]
        named = {"type": "function", "name": "look"}
        update(caller, tools=[LOOK], tool_choice=named, truncation=ratio, parallel_tool_calls=False)
        session = (await caller.transport.until("session.updated"))["session"]
        assert session["truncation"] == ratio and session["parallel_tool_calls"] is False
        assert session["tool_choice"] == named
        await answered(caller, max_output_tokens=1)
        await answered(caller, 2, tool_choice="none", parallel_tool_calls=True)

    call(cascade, talk)
    first, second = cascade.writer.requests
    assert first.truncation == Truncation(keep_share=0.8, limit_tokens=900)
    assert (first.tool_choice, first.max_output_tokens) == ("look", 1)
    assert (first.parallel_tool_calls, second.parallel_tool_calls) == (False, True)
    assert (second.tool_choice, second.max_output_tokens) == ("none", None)


@pytest.mark.parametrize("modality", ["text", "audio"])
def test_a_limit_of_one_token_ends_as_incomplete(modality: str) -> None:
    cascade = cascade_of([Say("Once"), End(FinishReason.LENGTH, Usage(20, 8, 1))])

    async def talk(caller: Caller) -> None:
        types(caller, "Tell me a story")
        response = await answered(caller, output_modalities=[modality], max_output_tokens=1)
        assert response["status"] == "incomplete"
        assert response["status_details"] == {"type": "incomplete", "reason": "max_output_tokens"}
        (item,) = response["output"]
        assert item["status"] == "incomplete"
        part = item["content"][0]
        assert part.get("text", part.get("transcript")) == "Once"
        assert adds_up(response["usage"]) and response["usage"]["output_tokens"] == 1
        assert response["max_output_tokens"] == 1

    call(cascade, talk)


def test_usage_adds_up_however_a_response_ends() -> None:
    so_far = Use(Usage(20, 8, 3))
    cascade = cascade_of(
        [Say("Yes."), so_far, End(FinishReason.STOP, Usage(20, 8, 4))],
        [Say("Yes, it"), so_far, Stall()],
        [Say("Yes, it"), so_far, Fail(StageError("llm_broke_off", "gone"))],
        [Stall()],
    )

    async def talk(caller: Caller) -> None:
        update(caller, output_modalities=["text"])
        types(caller, "Well?")
        completed = await answered(caller)
        send(caller, "response.create")
        await caller.transport.until("response.output_text.delta", 2)
        await asyncio.sleep(0.1)
        send(caller, "response.cancel")
        cancelled = (await caller.transport.until("response.done", 2))["response"]
        failed = await answered(caller, 3)
        send(caller, "response.create")
        await asyncio.sleep(0.1)
        send(caller, "response.cancel")
        unread = (await caller.transport.until("response.done", 4))["response"]
        assert problem(failed) == "llm_broke_off"
        ends = (completed, cancelled, failed, unread)
        assert all(adds_up(response["usage"]) for response in ends)
        totals = [response["usage"]["total_tokens"] for response in ends]
        assert totals == [24, 23, 23, 0]
        cached = [r["usage"]["input_token_details"]["cached_tokens"] for r in ends]
        assert cached == [8, 8, 8, 0]

    call(cascade, talk)


@pytest.mark.parametrize(
    "code", ["tool_call_not_made", "tool_call_invalid", "context_length_exceeded"]
)
def test_what_a_writer_cannot_do_is_told_as_a_failed_response(code: str) -> None:
    async def talk(caller: Caller) -> None:
        update(caller, output_modalities=["text"])
        types(caller, "Look.")
        response = await answered(caller)
        assert response["status"] == "failed" and problem(response) == code
        details = response["status_details"]
        assert details["type"] == "failed" and details["error"]["message"] == "what to do"
        assert response["output"] == []
        assert (await caller.transport.until("error"))["error"]["code"] == code

    call(cascade_of([Fail(StageError(code, "what to do"))]), talk)


def test_side_responses_show_no_item_events_and_null_input_is_the_conversation() -> None:
    cascade = cascade_of(words("Yes."))

    async def talk(caller: Caller) -> None:
        update(caller, output_modalities=["text"], instructions="Be brief.")
        types(caller, "Hello")
        await caller.transport.until("conversation.item.done")
        items = len(
            [kind for kind in caller.transport.types() if kind.startswith("conversation.item")]
        )
        for number, given in enumerate((None, []), start=1):
            response = await answered(
                caller, number, conversation="none", input=given, metadata={"n": str(number)}
            )
            assert response["conversation_id"] is None
            assert response["metadata"] == {"n": str(number)}
        assert items == len(
            [k for k in caller.transport.types() if k.startswith("conversation.item")]
        )

    call(cascade, talk)
    first, second = cascade.writer.requests
    assert [message.text for message in first.messages] == ["Be brief.", "Hello"]
    assert [message.text for message in second.messages] == ["Be brief."]
