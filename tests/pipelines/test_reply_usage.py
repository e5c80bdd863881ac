"""What a request says of tools and length reaches the writer; what it used reaches its reader."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelines.courtesy import Courtesy
from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.writer import Call, End, Fail, FakeWriter, Say, Step, Use
from pipelines.reply import ReplyTiming
from pipelines.types import (
    Finished,
    FinishReason,
    ReplyOutput,
    StageError,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
    Truncation,
    Usage,
    UsageSoFar,
)
from tests.pipelines.test_cascade import collect, request, with_cascade

READ, BEGUN = Usage(20, 8, 0), Usage(20, 8, 3)


def replied(script: list[Step], speak: bool) -> tuple[list[ReplyOutput], StageError | None]:
    found: list[tuple[list[ReplyOutput], StageError | None]] = []

    async def body(cascade: FakeCascade) -> None:
        found.append(await collect(cascade.reply(request(speak))))

    with_cascade(FakeCascade(writer=FakeWriter([script])), body)
    return found[0]


@pytest.mark.parametrize("speak", [True, False])
def test_usage_is_told_on_the_way_even_if_the_reply_then_fails(speak: bool) -> None:
    error = StageError("llm_broke_off", "gone")
    script: list[Step] = [Use(READ), Say("Well, this is it."), Use(BEGUN), Fail(error)]
    outputs, failure = replied(script, speak)
    assert failure is error
    assert [o.usage for o in outputs if isinstance(o, UsageSoFar)] == [READ, BEGUN]


@pytest.mark.parametrize("speak", [True, False])
def test_a_call_comes_while_the_words_before_it_are_spoken(speak: bool) -> None:
    script: list[Step] = [
        Say("Let me look that up for you."),
        Call("look", '{"a":', after_ms=300),
        Call("look", "1}"),
        End(FinishReason.TOOL_CALLS, BEGUN),
    ]
    outputs, failure = replied(script, speak)
    assert failure is None
    pieces = [o.arguments for o in outputs if isinstance(o, ToolCallDelta)]
    assert pieces == ['{"a":', "1}"], "piece by piece"


def test_the_writer_is_told_of_parallel_calls_and_truncation() -> None:
    writer = FakeWriter([[Say("Yes.")]])
    truncation = Truncation(may_drop=False)
    asked = replace(request(), parallel_tool_calls=False, truncation=truncation)

    async def body(cascade: FakeCascade) -> None:
        await collect(cascade.reply(asked))
        await collect(cascade.reply(request()))

    with_cascade(FakeCascade(writer=writer), body)
    first, second = writer.requests
    assert (first.parallel_tool_calls, first.truncation) == (False, truncation)
    assert (second.parallel_tool_calls, second.truncation) == (True, Truncation())


@pytest.mark.parametrize("choice", ["required", "look"])
def test_where_a_call_is_demanded_and_cut_off_no_words_stand_in_for_it(choice: str) -> None:
    tools = (ToolSpec("look", "", "{}"),)
    asked = replace(request(), tools=tools, tool_choice=choice, max_output_tokens=1)
    courtesy = ReplyTiming(courtesy=Courtesy(empty="I have no answer."))

    async def body(cascade: FakeCascade) -> None:
        outputs, failure = await collect(cascade.reply(asked))
        assert outputs == [Finished(FinishReason.LENGTH)] and failure is None
        outputs, _ = await collect(cascade.reply(replace(asked, tool_choice="auto")))
        assert TextDelta("I have no answer.") in outputs

    writer = FakeWriter([[End(FinishReason.LENGTH)]])
    with_cascade(FakeCascade(writer=writer, timing=courtesy), body)
