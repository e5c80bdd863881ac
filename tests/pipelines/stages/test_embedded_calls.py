"""Calls and long conversations with the embedded models: what they choose, and what it costs."""

from __future__ import annotations

import json

import pytest

from pipelines.stages.llm_llama import LlamaWriter
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    StageError,
    TextDelta,
    ToolCall,
    ToolSpec,
    Truncation,
    Usage,
    UsageSoFar,
    WriteOutput,
    WriteRequest,
)
from tests.pipelines.stages.embedded import check, freed, outputs, started
from tests.pipelines.stages.test_forced_calls import SYSTEM, calls_of, tiny
from tests.pipelines.stages.tool_schemas import objects

pytestmark = pytest.mark.models

FILLER = "the quick brown fox jumps over a lazy dog while seven old men watch from the bridge. "
WEATHER = ToolSpec(
    "get_weather",
    "Current weather of a city",
    json.dumps(objects(city={"type": "string"}, unit={"enum": ["C", "F"]})),
)
LIGHTS = ToolSpec(
    "set_lights",
    "Turns the lights of a room on or off",
    json.dumps(objects(room={"type": "string"}, on={"type": "boolean"})),
)
QUESTION = "What is the weather in Lisbon?"


def said(found: list[WriteOutput]) -> str:
    return "".join(output.text for output in found if isinstance(output, TextDelta))


def usage_of(found: list[WriteOutput]) -> Usage:
    assert isinstance(found[-1], Finished)
    return found[-1].usage


def ask(text: str, **options: object) -> WriteRequest:
    messages = (SYSTEM, Message("user", text))
    return WriteRequest("ask", messages, **options)  # pyright: ignore[reportArgumentType]


def test_a_call_of_its_own_accord_fits_the_schema_and_none_of_it_is_said() -> None:
    async def main() -> None:
        async with started(LlamaWriter(threads=1)) as writer:
            for text, name in ((QUESTION, "get_weather"), ("Turn the kitchen lights on.", None)):
                found = await outputs(writer.open(ask(text, tools=(WEATHER, LIGHTS))))
                for called, arguments in calls_of(found):
                    assert isinstance(json.loads(arguments), dict)
                    assert name in (None, called)
                assert calls_of(found) or name is None
                assert not set("{}<`") & set(said(found))
            spoken = ask(QUESTION, tools=(WEATHER,), is_spoken=True, temperature=0.0)
            found = await outputs(writer.open(spoken))
            assert calls_of(found) and not set("{}<`") & set(said(found))
            # What has been called and answered is spoken of, and not called again.
            ((name, arguments),) = calls_of(found)
            call = Message("assistant", "", (ToolCall("c1", name, arguments),))
            result = Message("tool", '{"temperature": 19, "sky": "sunny"}', call_id="c1")
            asked = (SYSTEM, Message("user", QUESTION), call, result)
            for choice in ("auto", "none"):
                after = WriteRequest(
                    "after", asked, tools=(WEATHER,), tool_choice=choice, temperature=0.0
                )
                found = await outputs(writer.open(after))
                assert "19" in said(found) and not calls_of(found)
                assert not set("{}<`") & set(said(found))

    check(main)


def test_there_is_one_call_at_most_where_one_is_allowed() -> None:
    both = "What is the weather in Lisbon, and what is the weather in Paris? Call twice."

    async def main() -> None:
        async with started(LlamaWriter(threads=1)) as writer:
            for choice in ("auto", "required"):
                request = ask(both, tools=(WEATHER,), tool_choice=choice, temperature=0.0)
                found = calls_of(await outputs(writer.open(request)))
                assert found and len(set(found)) == len(found)
                one = ask(
                    both,
                    tools=(WEATHER,),
                    tool_choice=choice,
                    temperature=0.0,
                    parallel_tool_calls=False,
                )
                assert calls_of(await outputs(writer.open(one))) == found[:1]

    check(main)


def test_what_a_reply_that_was_broken_off_has_cost_is_known() -> None:
    async def main() -> None:
        async with started(tiny()) as writer:
            whole = await outputs(writer.open(ask("Tell me a story.", max_output_tokens=24)))
            stages = [output.usage for output in whole if isinstance(output, UsageSoFar)]
            assert [usage.output_tokens for usage in stages] == sorted(
                usage.output_tokens for usage in stages
            )
            assert stages[-1] == usage_of(whole)
            stream = writer.open(ask("Tell me a story.", max_output_tokens=200))
            seen = [await anext(aiter(stream)) for _ in range(8)]
            stream.abort()
            counts = [output.usage for output in seen if isinstance(output, UsageSoFar)]
            assert counts and 0 < counts[-1].output_tokens < 200
            assert counts[-1].cached_tokens > 0, "the same question was read before"
            await freed(writer)

    check(main)


def test_a_conversation_that_may_not_be_cut_is_refused_when_it_is_too_long() -> None:
    talk = [Message("user" if n % 2 == 0 else "assistant", f"{n}: {FILLER}") for n in range(81)]

    async def main() -> None:
        async with started(LlamaWriter("smollm2-135m", context_tokens=1536, threads=1)) as writer:
            whole = WriteRequest(
                "whole",
                (SYSTEM, *talk),
                truncation=Truncation(may_drop=False),
                max_output_tokens=3,
            )
            with pytest.raises(StageError) as failure:
                await outputs(writer.open(whole))
            assert failure.value.code == "context_length_exceeded"

    check(main)


def test_a_cut_conversation_stays_in_the_cache_from_turn_to_turn() -> None:
    talk = [Message("user" if n % 2 == 0 else "assistant", f"{n}: {FILLER}") for n in range(41)]
    kept = Truncation(keep_share=0.5, limit_tokens=300)
    fresh: list[int] = []

    async def main() -> None:
        async with started(LlamaWriter("smollm2-135m", context_tokens=1536, threads=1)) as writer:
            for end in range(21, 41, 2):  # cut at every third
                request = WriteRequest(
                    "turn", (SYSTEM, *talk[:end]), truncation=kept, max_output_tokens=1
                )
                usage = usage_of(await outputs(writer.open(request)))
                assert usage.input_tokens <= 400
                fresh.append(usage.input_tokens - usage.cached_tokens)

    check(main)
    # Two messages are new each time; only a cut makes the model read more.
    assert sum(tokens > 80 for tokens in fresh) <= len(fresh) // 2


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_a_limit_of_one_token_is_one(choice: str) -> None:
    async def main() -> None:
        async with started(tiny()) as writer:
            request = ask("Hello", tools=(WEATHER,), tool_choice=choice, max_output_tokens=1)
            found = await outputs(writer.open(request))
            assert isinstance(found[-1], Finished) and found[-1].reason is FinishReason.LENGTH
            assert usage_of(found).output_tokens == 1

    check(main)
