"""A remote writer and the server that it talks to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pipelines import ports
from pipelines.fakes.chat_server import Behaviour, ChatServer
from pipelines.stages.llm_openai import OpenAIWriter
from pipelines.stages.llm_openai_client import OpenAIWriterOptions
from pipelines.types import Message, StageError, ToolSpec, WriteOutput, WriteRequest
from tests.pipelines.waiting import until

TOOLS = tuple(ToolSpec(name, "", '{"type": "object"}') for name in ("look", "find", "noid"))
REQUEST = WriteRequest("r1", (Message("user", "hi"),), tools=TOOLS)


@asynccontextmanager
async def talking_to(
    *behaviours: Behaviour, **options: Any
) -> AsyncIterator[tuple[ChatServer, OpenAIWriter]]:
    """The second try follows the first at once, unless `options` say otherwise."""
    options = {"retry_delay_ms": 1} | options
    server = ChatServer(behaviours)
    async with server.listen():
        writer = OpenAIWriter(OpenAIWriterOptions(base_url=server.base_url, model="m", **options))
        await writer.start(lambda line: None)
        try:
            yield server, writer
        finally:
            await writer.close()
            await until(lambda: server.connections == 0)
    await until(lambda: len(asyncio.all_tasks()) == 1)


async def collect(stream: ports.Stream[None, WriteOutput]) -> list[WriteOutput]:
    return [output async for output in stream]


async def failure(writer: OpenAIWriter) -> tuple[list[WriteOutput], StageError]:
    outputs: list[WriteOutput] = []
    with pytest.raises(StageError) as raised:
        async for output in writer.open(REQUEST):
            outputs.append(output)  # noqa: PERF401 (what came before a failure counts)
    await until(lambda: writer.active == 0)
    return outputs, raised.value
