"""The writer on a stand-in for the engine, with a real tokenizer and a chat template."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines import ports
from pipelines.runtime.ticket import Ticket
from pipelines.stages.llm_sglang import SGLangWriter
from pipelines.stages.llm_sglang_arguments import SGLangOptions
from pipelines.stages.llm_sglang_prompt import Prompts
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    StageError,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
    Urgency,
    Usage,
    UsageSoFar,
    WriteOutput,
    WriteRequest,
)
from tests.pipelines.stages.embedded import outputs
from tests.pipelines.stages.sglang_model import FakeEngine, Script, write_model
from tests.pipelines.waiting import check, until

HELLO = Message("user", "Hello.")
REQUEST = WriteRequest("r", (HELLO,))
CITY = ToolSpec(
    "weather",
    "Tells it.",
    json.dumps(
        {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    ),
)
CLOCK = ToolSpec("clock", "Tells the time.", "{}")
LISBON = '{"city": "Lisbon"}'
CALL = f'<tool_call>\n{{"name": "weather", "arguments": {LISBON}}}\n</tool_call>'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def prompts(folder: Path) -> Prompts:
    return Prompts.load(folder)


class Bench:
    """A started writer, and the engine behind it."""

    def __init__(self, writer: SGLangWriter, engine: FakeEngine, prompts: Prompts) -> None:
        self.writer, self.engine, self.prompts = writer, engine, prompts

    async def write(self, request: WriteRequest) -> list[WriteOutput]:
        return await outputs(self.writer.open(request))

    def shown(self, call: int = -1) -> str:
        ids = self.engine.calls[call]["ids"]
        return self.prompts._core.decode(ids, skip_special_tokens=False)


@asynccontextmanager
async def bench(
    prompts: Prompts, script: Script | str, *, engine: FakeEngine | None = None, **options: Any
) -> AsyncIterator[Bench]:
    """script: what the model writes; a text is written whole, with the end of a turn."""

    def answer(_ids: list[int], _sampling: dict[str, Any]) -> Sequence[int]:
        assert isinstance(script, str)
        return prompts.encode(script + "<|im_end|>")

    engine = engine or FakeEngine(answer if isinstance(script, str) else script)
    writer = SGLangWriter(
        SGLangOptions(Path("model"), 0.3, **{"context_tokens": 4096, **options}),
        make_engine=lambda _options: engine,
        load_prompts=lambda _folder: prompts,
    )
    as_port: ports.Writer = writer
    await as_port.start(lambda line: None)
    engine.calls.clear()  # that of the warm-up
    try:
        yield Bench(writer, engine, prompts)
    finally:
        await writer.close()
    assert engine.is_shut_down and engine.running == 0 and writer.active == 0


def said(found: Sequence[WriteOutput]) -> str:
    return "".join(output.text for output in found if isinstance(output, TextDelta))


def called(found: Sequence[WriteOutput]) -> list[tuple[str, str]]:
    made: dict[int, tuple[str, str]] = {}
    for output in found:
        if isinstance(output, ToolCallDelta):
            name, arguments = made.get(output.index, ("", ""))
            assert bool(output.call_id) == bool(output.name) == (output.index not in made)
            made[output.index] = (name + output.name, arguments + output.arguments)
    return list(made.values())


def ending(found: Sequence[WriteOutput]) -> Finished:
    assert isinstance(found[-1], Finished)
    assert not any(isinstance(output, Finished) for output in found[:-1])
    return found[-1]


# ---- words ---------------------------------------------------------------------------------------


def test_words_come_as_they_are_written_and_usage_is_told(prompts: Prompts) -> None:
    async def main() -> None:
        async with bench(prompts, " Grüße, 世界 🙂.") as it:
            found = await it.write(REQUEST)
            assert said(found) == "Grüße, 世界 🙂."
            size = len(it.engine.calls[0]["ids"])
            written = len(prompts.encode(" Grüße, 世界 🙂.")) + 1
            assert ending(found) == Finished(FinishReason.STOP, Usage(size, size // 2, written))
            told = [output.usage for output in found if isinstance(output, UsageSoFar)]
            assert told[0] == Usage(size, size // 2, 1)
            assert [usage.output_tokens for usage in told] == sorted(
                {usage.output_tokens for usage in told}
            )

    check(main)


def test_a_request_is_put_as_the_engine_wants_it(prompts: Prompts) -> None:
    async def main() -> None:
        async with bench(prompts, "Yes.", temperature=0.5, top_k=7) as it:
            await it.write(replace(REQUEST, urgency=Urgency.DRAFT, max_output_tokens=9))
            await it.write(replace(REQUEST, temperature=0.0))
            first, second = it.engine.calls
            assert (first["temperature"], first["top_k"], first["max_new_tokens"]) == (0.5, 7, 9)
            assert first["stop_token_ids"] == sorted(prompts.stop_ids)
            assert first["priority"] == int(Urgency.DRAFT) and second["priority"] == 0
            assert second["temperature"] == 0.0
            assert it.shown().endswith("assistant\n<think>\n\n</think>\n\n")

    check(main)


def test_the_engine_hears_of_the_urgency_that_holds_when_it_is_asked(prompts: Prompts) -> None:
    async def main() -> None:
        async with bench(prompts, "Hi.") as made:
            request = replace(REQUEST, urgency=max(Urgency))
            ticket = Ticket.of(request)
            ticket.hurry(Urgency.FIRST_AUDIO)
            async for _ in made.writer._write(request, ticket):
                pass
            assert made.engine.calls[-1]["priority"] == int(Urgency.FIRST_AUDIO)

    check(main)


def test_what_is_only_read_writes_nothing(prompts: Prompts) -> None:
    async def main() -> None:
        async with bench(prompts, "never said") as it:
            found = await it.write(replace(REQUEST, max_output_tokens=0))
            size = len(it.engine.calls[0]["ids"])
            usage = Usage(size, size // 2, 0)
            assert found == [UsageSoFar(usage), Finished(FinishReason.LENGTH, usage)]
            assert it.shown() == "<|im_start|>user\nHello."
            assert it.engine.calls[0]["max_new_tokens"] == 1

    check(main)


def test_a_limit_is_kept_and_told(prompts: Prompts) -> None:
    async def main() -> None:
        async with bench(prompts, "x" * 50) as it:
            found = await it.write(replace(REQUEST, max_output_tokens=7))
            assert said(found) == "x" * 7 and ending(found).reason is FinishReason.LENGTH
            await it.write(replace(REQUEST, max_output_tokens=100_000))
            call = it.engine.calls[-1]
            assert len(call["ids"]) + call["max_new_tokens"] < 4096, "no more than the context has"

    check(main)


def test_a_spoken_reply_ends_at_a_sentence_and_frees_the_engine(prompts: Prompts) -> None:
    sentence = "one two three four five six seven eight nine ten. "

    async def main() -> None:
        async with bench(prompts, sentence * 40) as it:
            found = await it.write(replace(REQUEST, is_spoken=True))
            assert said(found) == (sentence * 5).strip()
            assert ending(found).reason is FinishReason.STOP
            await until(lambda: it.engine.running == 0)
            assert it.engine.aborted
            assert len(it.engine.steps) and max(it.engine.steps.values()) < len(sentence) * 8

    check(main)


# ---- calls of its own accord ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "text", "words", "calls", "reason"),
    [
        ({}, f"I look. {CALL}", "I look. ", [("weather", LISBON)], FinishReason.TOOL_CALLS),
        ({}, CALL * 2, "", [("weather", LISBON)] * 2, FinishReason.TOOL_CALLS),
        ({"parallel_tool_calls": False}, CALL * 2, "", [("weather", LISBON)],
         FinishReason.TOOL_CALLS),
        ({}, f"{CALL}\nIt is warm.", "", [("weather", LISBON)], FinishReason.TOOL_CALLS),
        ({"tool_choice": "none"}, f"No. {CALL}", "No. ", [], FinishReason.STOP),
        ({"tools": ()}, f"No. {CALL}", "No. ", [], FinishReason.STOP),
        ({"max_output_tokens": 60}, CALL, "", [("weather", LISBON[:13])], FinishReason.LENGTH),
        ({"max_output_tokens": len(CALL) - 20}, CALL, "", [("weather", LISBON)],
         FinishReason.TOOL_CALLS),
    ],
)  # fmt: skip
def test_calls_are_told_and_what_is_none_is_not_said(
    prompts: Prompts,
    changes: dict[str, Any],
    text: str,
    words: str,
    calls: list[tuple[str, str]],
    reason: FinishReason,
) -> None:
    if changes.get("max_output_tokens") == 60:
        cut = len(prompts.encode(CALL[: CALL.index(LISBON) + 13]))
        changes = {"max_output_tokens": cut}
    elif "max_output_tokens" in changes:
        changes = {"max_output_tokens": len(prompts.encode(CALL)) - 1}

    async def main() -> None:
        async with bench(prompts, text) as it:
            found = await it.write(replace(REQUEST, **{"tools": (CITY, CLOCK), **changes}))
            assert (said(found), called(found)) == (words, calls)
            assert ending(found).reason is reason

    check(main)


# ---- aborts and failures -------------------------------------------------------------------------


def test_an_abort_ends_one_request_and_no_other(prompts: Prompts) -> None:
    async def main() -> None:
        async with bench(prompts, lambda ids, sampling: None) as it:
            streams = [it.writer.open(replace(REQUEST, request_id=f"r{n}")) for n in range(12)]
            for stream in streams:
                assert isinstance(await anext(stream), TextDelta)
            streams[0].abort()
            await until(lambda: it.writer.active == 11)
            assert set(it.engine.aborted) == {it.engine.calls[0]["rid"]}
            assert it.engine.running == 11, "ids are no beginnings of each other"
            assert [output async for output in streams[0]] == []
            for stream in streams:
                stream.abort()
            await until(lambda: it.writer.active == 0)
            assert it.engine.running == 0

    check(main)


def test_an_abort_that_overtakes_its_request_still_ends_it(prompts: Prompts) -> None:
    async def main() -> None:
        async with bench(prompts, lambda ids, sampling: None) as it:
            it.engine.gate.clear()
            stream = it.writer.open(REQUEST)
            await until(lambda: bool(it.engine.calls))
            stream.abort()
            await until(lambda: bool(it.engine.missed))
            assert it.writer.active == 1, "the request still comes"
            it.engine.gate.set()
            await until(lambda: it.writer.active == 0)
            assert it.engine.running == 0 and it.engine.aborted, "not at its own end"

    check(main)


@pytest.mark.parametrize(
    ("failure", "refusal", "code"),
    [
        (ValueError("The input (9 tokens) is longer than the model's context length (4 tokens)."),
         None, "context_length_exceeded"),
        (None, {"message": "Input length (9 tokens) exceeds the maximum allowed length (4 tokens).",
                "status_code": 400}, "context_length_exceeded"),
        (RuntimeError("no memory"), None, "llm_failed"),
        (None, {"message": "The request queue is full.", "status_code": 503}, "llm_rate_limited"),
        (None, {"message": "NaN in logits", "status_code": 500}, "llm_failed"),
        (None, {"message": "Abort by somebody", "status_code": None}, "llm_failed"),
    ],
)  # fmt: skip
def test_failures_of_the_engine_have_codes_and_leave_others_alone(
    prompts: Prompts, failure: Exception | None, refusal: dict[str, Any] | None, code: str
) -> None:
    async def main() -> None:
        async with bench(prompts, "Yes.") as it:
            it.engine.failure, it.engine.refusal = failure, refusal
            with pytest.raises(StageError) as caught:
                await it.write(REQUEST)
            assert caught.value.code == code
            it.engine.failure = it.engine.refusal = None
            assert said(await it.write(REQUEST)) == "Yes."

    check(main)


def test_a_prompt_that_cannot_fit_never_reaches_the_engine(prompts: Prompts) -> None:
    async def main() -> None:
        async with bench(prompts, "Yes.") as it:
            with pytest.raises(StageError) as caught:
                await it.write(replace(REQUEST, messages=(Message("user", "x" * 5000),)))
            assert caught.value.code == "context_length_exceeded"
            assert it.engine.calls == []

    check(main)


def test_closing_ends_what_runs(prompts: Prompts) -> None:
    async def main() -> None:
        async with bench(prompts, lambda ids, sampling: None) as it:
            stream = it.writer.open(REQUEST)
            await anext(stream)
            await it.writer.close()
            assert [output async for output in stream] == []
            late = it.writer.open(REQUEST)
            with pytest.raises(StageError, match="is closed"):
                await anext(late)

    check(main)


def test_one_request_does_not_wait_for_another(prompts: Prompts) -> None:
    """The engine mixes them: a long one that came first stands in nobody's way."""
    answers = iter([None, prompts.encode("Yes.<|im_end|>")])

    async def main() -> None:
        # The first is the warm-up's.
        engine = FakeEngine(lambda ids, sampling: prompts.encode("Hi.<|im_end|>"))
        async with bench(prompts, "", engine=engine) as it:
            engine.script = lambda ids, sampling: next(answers)
            endless = it.writer.open(REQUEST)
            await anext(endless)
            async with asyncio.timeout(5):
                assert said(await it.write(replace(REQUEST, request_id="s"))) == "Yes."
            endless.abort()

    check(main)
