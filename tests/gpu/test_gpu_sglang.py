"""The writer on the real engine, with random weights in the shape of a small Qwen3.

PARLEY_SGLANG_ATTENTION and PARLEY_SGLANG_SAMPLING name other backends than the engine prefers.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pipelines.stages.llm_sglang import SGLangWriter
from pipelines.stages.llm_sglang_arguments import SGLangOptions
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    StageError,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
    UsageSoFar,
    WriteOutput,
    WriteRequest,
)
from tests.pipelines.stages.embedded import freed, outputs
from tests.pipelines.stages.sglang_model import write_model

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(importlib.util.find_spec("sglang") is None, reason="needs sglang"),
    pytest.mark.filterwarnings("default"),  # those of the engine's own packages
]

START_S = 400.0
SHAPE: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "max_position_embeddings": 40960,
    "num_attention_heads": 16,
    "num_hidden_layers": 8,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
LONG = (Message("user", " ".join(f"word {number}" for number in range(120))),)
TOOL = ToolSpec(
    "weather",
    "",
    json.dumps(
        {"type": "object", "properties": {"unit": {"enum": ["C", "F"]}}, "required": ["unit"],
         "additionalProperties": False}
    ),
)  # fmt: skip


def shape(folder: Path) -> Path:
    """A model that writes words, and so many of them that it hardly ever ends its turn."""
    path = write_model(folder, words=65_000) / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, **SHAPE}), encoding="utf-8")
    return folder


@asynccontextmanager
async def started(folder: Path, **changes: Any) -> AsyncIterator[SGLangWriter]:
    writer = SGLangWriter(
        SGLangOptions(
            shape(folder),
            memory_share=0.2,
            context_tokens=4096,
            load_format="dummy",
            temperature=1.0,
            top_p=1.0,
            attention=os.environ.get("PARLEY_SGLANG_ATTENTION"),
            sampling=os.environ.get("PARLEY_SGLANG_SAMPLING"),
            **changes,
        ),
        instructions="Be brief.",
    )
    async with asyncio.timeout(START_S):
        await writer.start(print)
    try:
        yield writer
    finally:
        await writer.close()


def said(found: list[WriteOutput]) -> str:
    return "".join(output.text for output in found if isinstance(output, TextDelta))


def ending(found: list[WriteOutput]) -> Finished:
    assert isinstance(found[-1], Finished)
    return found[-1]


async def _first(writer: SGLangWriter, name: str) -> Any:
    stream = writer.open(WriteRequest(name, LONG, max_output_tokens=2000))
    async for output in stream:
        if isinstance(output, TextDelta | UsageSoFar):
            break
    return stream


async def _converse(writer: SGLangWriter) -> None:
    read = await outputs(writer.open(WriteRequest("read", LONG, max_output_tokens=0)))
    assert ending(read).usage.output_tokens == 0
    found = await outputs(writer.open(WriteRequest("words", LONG, max_output_tokens=200)))
    usage = ending(found).usage
    assert said(found) and usage.output_tokens <= 200
    assert usage.cached_tokens > usage.input_tokens * 0.9, "the prompt has been read already"

    streams = [await _first(writer, f"r{number}") for number in range(8)]
    streams[0].abort()
    while writer.active > 7:
        await asyncio.sleep(0.0005)
    for stream in streams[1:]:
        assert await anext(stream), "others go on"
        stream.abort()
    await freed(writer)

    with pytest.raises(StageError) as caught:
        await outputs(writer.open(WriteRequest("long", (Message("user", "x" * 5000),))))
    assert caught.value.code == "context_length_exceeded"


def test_it_reads_writes_and_aborts(tmp_path: Path) -> None:
    async def main() -> None:
        async with started(tmp_path) as writer:
            await _converse(writer)
            request = WriteRequest("call", LONG, tools=(TOOL,), tool_choice="weather")
            found = await outputs(writer.open(request))
            [call] = [output for output in found if isinstance(output, ToolCallDelta)]
            assert json.loads(call.arguments)["unit"] in ("C", "F"), "random weights, true schema"
            assert ending(found).reason is FinishReason.TOOL_CALLS

    asyncio.run(main())
