"""The language model with its real weights: the smallest for what any model must do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.runtime.cpu import CpuToken
from pipelines.stages.llm_llama import SPOKEN_TOKENS, LlamaWriter
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    StageError,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
    Urgency,
    WriteOutput,
    WriteRequest,
)
from pipelines.weights import ModelMissing
from tests.pipelines.stages.embedded import check, freed, outputs, started

pytestmark = pytest.mark.models

SYSTEM = Message("system", "You are a friendly voice assistant. Answer in one short sentence.")
FRANCE = Message("user", "What is the capital of France?")
FILLER = "the quick brown fox jumps over a lazy dog while seven old men watch from the bridge. "
LONG = Message("user", FILLER * 78)  # about 1500 tokens: many seconds of prefill
STORY = Message("user", "Tell me a long story about a dog and a cat who travel.")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
WEATHER = ToolSpec("get_weather", "Current weather of a city", json.dumps(SCHEMA))


def tiny(cpu: CpuToken | None = None) -> LlamaWriter:
    # One thread: two wait for each other, for very long on a machine that is busy otherwise.
    return LlamaWriter("smollm2-135m", cpu=cpu, threads=1)


def default(cpu: CpuToken | None = None) -> LlamaWriter:
    return LlamaWriter(cpu=cpu, threads=1)


def test_a_prompt_that_is_read_ahead_is_in_the_cache_when_its_reply_is_asked_for() -> None:
    async def main() -> None:
        async with started(tiny()) as writer:
            part = Message("user", "What is the capital of")
            ahead = WriteRequest("ahead", (SYSTEM, part), max_output_tokens=0)
            (read,) = await outputs(writer.open(ahead))
            assert isinstance(read, Finished) and read.usage.output_tokens == 0
            asked = WriteRequest("reply", (SYSTEM, FRANCE), max_output_tokens=8)
            usage = end_of(await outputs(writer.open(asked))).usage
            # All but the last words and the marks that close the message.
            assert usage.input_tokens - usage.cached_tokens <= 12
            assert usage.cached_tokens >= read.usage.input_tokens - 1

    check(main)


def text_of(found: list[WriteOutput]) -> str:
    return "".join(output.text for output in found if isinstance(output, TextDelta))


def end_of(found: list[WriteOutput]) -> Finished:
    assert isinstance(found[-1], Finished)
    return found[-1]


async def write(writer: LlamaWriter, *messages: Message, **options: Any) -> list[WriteOutput]:
    request = WriteRequest("write", (SYSTEM, *messages), **options)
    return await outputs(writer.open(request))


def test_it_answers_and_keeps_its_prefix() -> None:
    async def main() -> None:
        async with started(default(CpuToken())) as writer:
            found = await write(writer, FRANCE)
            assert "Paris" in text_of(found)
            assert end_of(found).reason is FinishReason.STOP
            answer = Message("assistant", text_of(found))
            again = await write(writer, FRANCE, answer, Message("user", "And of Italy?"))
            usage = end_of(again).usage
            assert usage.cached_tokens >= end_of(found).usage.input_tokens - 1
            assert usage.cached_tokens < usage.input_tokens

    check(main)


@pytest.mark.parametrize("outputs_before", [0, 3])
def test_an_abort_frees_the_model(outputs_before: int) -> None:
    async def main() -> None:
        async with started(tiny(CpuToken())) as writer:
            message = STORY if outputs_before else LONG
            stream = writer.open(WriteRequest("gone", (SYSTEM, message)))
            for _ in range(outputs_before):
                await anext(aiter(stream))
            if not outputs_before:
                await asyncio.to_thread(lambda: None)  # let the prefill begin
            stream.abort()
            assert [output async for output in stream] == []
            await freed(writer)
            assert text_of(await write(writer, FRANCE))

    check(main)


def test_a_live_reply_comes_between_the_quanta_of_a_draft() -> None:
    async def main() -> None:
        async with started(tiny(CpuToken())) as writer:
            message = Message("user", FILLER * 26)  # 500 tokens: many quanta more than the reply
            asked = WriteRequest("draft", (SYSTEM, message), Urgency.DRAFT, max_output_tokens=4)
            draft = writer.open(asked)
            live = await write(writer, FRANCE)
            assert text_of(live)
            assert writer.active == 1  # the draft, still in its prefill
            draft.hurry(Urgency.FIRST_AUDIO)
            assert isinstance((await outputs(draft))[-1], Finished)

    check(main)


def test_replies_are_bounded() -> None:
    async def main() -> None:
        async with started(tiny()) as writer:
            short = await write(writer, STORY, max_output_tokens=5)
            assert end_of(short).reason is FinishReason.LENGTH
            assert end_of(short).usage.output_tokens == 5
            # The likeliest words: the same story each time.
            spoken = await write(writer, STORY, is_spoken=True, temperature=0.0)
            assert end_of(spoken).usage.output_tokens <= SPOKEN_TOKENS
            assert end_of(spoken).reason is FinishReason.STOP
            assert text_of(spoken)[-1] in ".!?"
            warm = await write(writer, STORY, max_output_tokens=0)
            assert warm == [end_of(warm)]

    check(main)


def test_characters_of_several_tokens_are_whole() -> None:
    ask = Message("user", "Repeat exactly: 🎉🎈🦜🦔🪁🧿 ഹലോ")

    async def main() -> None:
        async with started(tiny()) as writer:
            for limit in (20, 60):
                found = await write(writer, ask, max_output_tokens=limit, temperature=0.0)
                assert "\ufffd" not in text_of(found)

    check(main)


@pytest.mark.parametrize("choice", ["required", "get_weather"])
def test_a_tool_can_be_demanded(choice: str) -> None:
    question = Message("user", "What is the weather in Lisbon?")

    async def main() -> None:
        async with started(tiny()) as writer:
            found = await write(writer, question, tools=(WEATHER,), tool_choice=choice)
            assert not text_of(found)
            pieces = [output for output in found if isinstance(output, ToolCallDelta)]
            assert len(pieces) > 1, "the arguments are told as they are written"
            arguments = json.loads("".join(piece.arguments for piece in pieces))
            assert pieces[0].name == "get_weather" and pieces[0].call_id
            assert set(arguments) == {"city", "unit"}
            assert arguments["unit"] in ("C", "F")
            assert end_of(found).reason is FinishReason.TOOL_CALLS

    check(main)


def test_tools_may_be_used_or_not() -> None:
    question = Message("user", "What is the weather in Lisbon?")

    async def main() -> None:
        async with started(default()) as writer:
            used = await write(writer, question, tools=(WEATHER,), temperature=0.0)
            assert any(isinstance(output, ToolCallDelta) for output in used)
            unused = await write(writer, question, tools=(WEATHER,), tool_choice="none")
            assert not any(isinstance(output, ToolCallDelta) for output in unused)

    check(main)


def test_bad_requests_fail_alone() -> None:
    broken = ToolSpec("broken", "", '{"type": "no such type"}')

    async def main() -> None:
        async with started(tiny()) as writer:
            with pytest.raises(StageError) as failure:
                await write(writer, FRANCE, tools=(broken,), tool_choice="required")
            assert failure.value.code in ("llm_bad_tool_schema", "llm_failed")
            with pytest.raises(StageError, match="does not fit"):
                await write(writer, Message("user", FILLER * 200))
            with pytest.raises(StageError, match="without a message"):
                await outputs(writer.open(WriteRequest("empty", ())))
            assert text_of(await write(writer, FRANCE))
            assert writer.active == 0

    check(main)


def test_a_long_conversation_never_fails() -> None:
    async def main() -> None:
        async with started(LlamaWriter("smollm2-135m", context_tokens=1536, threads=1)) as writer:
            talk: list[Message] = []
            for number in range(40):
                talk += [Message("user", f"{number}: {FILLER}"), Message("assistant", "I see.")]
            found = await write(writer, *talk, FRANCE, max_output_tokens=5)
            assert end_of(found).usage.input_tokens <= 1536 - 1024
            again = await write(writer, *talk, FRANCE, max_output_tokens=5)
            assert end_of(again).usage.cached_tokens >= end_of(found).usage.input_tokens - 1

    check(main)


def test_what_cannot_be_loaded_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but not really")

    async def main() -> None:
        with pytest.raises(StageError, match="broken.gguf could not be loaded"):
            await LlamaWriter(path=broken).start(lambda line: None)
        monkeypatch.setenv("PARLEY_MODELS", str(tmp_path))
        with pytest.raises(ModelMissing, match="parley models fetch better"):
            await LlamaWriter("qwen2.5-coder-1.5b").start(lambda line: None)
        with pytest.raises(ValueError, match="There is no model 'gpt'"):
            LlamaWriter("gpt")

    check(main)
