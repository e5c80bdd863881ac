"""The language model on a GPU: SGLang's engine in this process.

It brings processes of its own, ends the process that it lives in when one of them dies, and kills
all children of that process when it is closed, so it belongs into a worker process.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from pipelines.ports import Progress
from pipelines.runtime.async_stage import AsyncStage
from pipelines.runtime.handover import on_loop
from pipelines.runtime.ticket import Ticket
from pipelines.stages.context_window import context_exceeded
from pipelines.stages.llm_sglang_arguments import (
    SGLangOptions,
    can_compile_kernels,
    card_memory_mib,
    engine_arguments,
    known_arguments,
)
from pipelines.stages.llm_sglang_demand import Demand
from pipelines.stages.llm_sglang_engine import EngineFailed, EngineThread, Piece
from pipelines.stages.llm_sglang_prompt import Prompts
from pipelines.stages.llm_sglang_reply import Reply, usage_of
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    StageError,
    Usage,
    UsageSoFar,
    WriteOutput,
    WriteRequest,
    demands_call,
)

RESERVED_TOKENS = 1024  # of the context: what a conversation always leaves for the reply
SPARED_TOKENS = 8  # the engine takes no prompt that fills its context to the last token
SPOKEN_TOKENS = 256  # of a spoken reply without a limit of its own: more than a minute
REPLY_TOKENS = 2048  # of any other: a model may repeat itself for ever
MISSING = (
    "The language model needs SGLang, which is not installed here ({cause}): install the extra "
    "`sglang` (`pip install -e '.[sglang]'`), or choose another writer."
)


class SGLangWriter(AsyncStage[WriteRequest, WriteOutput]):
    """`pipelines.ports.Writer`. Codes: llm_failed, llm_rate_limited, llm_no_messages,
    llm_bad_tool_schema, tool_call_not_made, tool_call_invalid, context_length_exceeded.

    instructions: the system message that most prompts begin with; it is read at the start, so that
    the first reply need not wait for it. make_engine, load_prompts: stand in for the real ones.
    """

    def __init__(
        self,
        options: SGLangOptions,
        *,
        instructions: str = "",
        make_engine: Callable[[SGLangOptions], Any] | None = None,
        load_prompts: Callable[[Path], Prompts] = Prompts.load,
    ) -> None:
        super().__init__("llm", self._write, failure_code="llm_failed")
        self._options = options
        self._instructions = instructions
        self._make_engine = make_engine or _make_engine
        self._load_prompts = load_prompts
        self._thread: EngineThread | None = None
        self._prompts: Prompts | None = None
        self._room_tokens = options.context_tokens - RESERVED_TOKENS

    async def start(self, progress: Progress) -> None:
        """Load the model, which takes a minute or two. Raises StageError."""
        options, hop = self._options, on_loop(progress)
        progress(f"language model: loading {options.model}")
        try:
            self._prompts = await asyncio.to_thread(self._load_prompts, options.model)
            self._thread = EngineThread(lambda: self._make_engine(options))
            await self._thread.start()
        except ModuleNotFoundError as error:
            raise StageError("llm_failed", MISSING.format(cause=error)) from error
        except StageError:
            raise
        except Exception as error:  # the engine's own errors, which are not importable here
            raise StageError(
                "llm_failed",
                f"The language model in {options.model} could not be loaded: {error}. What the "
                "engine wrote above says more.",
            ) from error
        await super().start(progress)
        hop("language model: warming up")
        await self._warm()

    async def close(self) -> None:
        await super().close()
        thread, self._thread = self._thread, None
        if thread is not None:
            await thread.close()

    async def _warm(self) -> None:
        told = [Message("system", self._instructions)] if self._instructions else []
        request = WriteRequest("warm-up", (*told, Message("user", "Hello.")), max_output_tokens=1)
        async with aclosing(self._write(request, Ticket.of(request))) as outputs:
            async for _ in outputs:
                pass

    # ---- one request -------------------------------------------------------------------------

    async def _write(self, request: WriteRequest, ticket: Ticket) -> AsyncGenerator[WriteOutput]:
        prompts = self._prompts
        assert prompts is not None
        prompt = await asyncio.to_thread(prompts.prompt, request, self._room_tokens)
        if request.max_output_tokens == 0:
            outputs = self._read(request, ticket, prompt)
        elif demands_call(request):
            outputs = self._demand(request, ticket, prompt, prompts)
        else:
            outputs = self._converse(request, ticket, prompt, prompts)
        try:
            async with aclosing(outputs):
                async for output in outputs:
                    yield output
        except EngineFailed as error:
            raise _failed(error) from error

    async def _read(
        self, request: WriteRequest, ticket: Ticket, prompt: list[int]
    ) -> AsyncGenerator[WriteOutput]:
        """Only have the prompt in the cache: the token that comes with it costs nothing."""
        usage = Usage()
        async with aclosing(self._ask_engine(request, ticket, prompt, 1)) as pieces:
            async for piece in pieces:
                read = usage_of(piece)
                usage = dataclasses.replace(read, output_tokens=0)
                yield UsageSoFar(usage)
        yield Finished(FinishReason.LENGTH, usage)

    async def _demand(
        self, request: WriteRequest, ticket: Ticket, prompt: list[int], prompts: Prompts
    ) -> AsyncGenerator[WriteOutput]:
        def run(
            ids: Sequence[int], limit_tokens: int, schema: Mapping[str, Any] | None
        ) -> AsyncGenerator[Piece]:
            return self._ask_engine(request, ticket, ids, limit_tokens, schema)

        demand = Demand(prompts, request, run, follows_schemas=self._options.follows_schemas)
        limit_tokens = self._limit(request, len(prompt))
        async with aclosing(demand.outputs(prompt, limit_tokens)) as outputs:
            async for output in outputs:
                yield output

    async def _converse(
        self, request: WriteRequest, ticket: Ticket, prompt: list[int], prompts: Prompts
    ) -> AsyncGenerator[WriteOutput]:
        reply = Reply(prompts, request)
        limit_tokens = self._limit(request, len(prompt))
        async with aclosing(self._ask_engine(request, ticket, prompt, limit_tokens)) as pieces:
            async for piece in pieces:
                for output in reply.feed(piece):
                    yield output
                if reply.is_enough:
                    break
            yield reply.finished()

    async def _ask_engine(
        self,
        request: WriteRequest,
        ticket: Ticket,
        ids: Sequence[int],
        limit_tokens: int,
        schema: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[Piece]:
        """The engine's answer. Closed early, it ends the request, and waits until it has.

        The engine hears of an urgency once, so it is the ticket's at this moment.
        """
        thread, prompts = self._thread, self._prompts
        assert thread is not None and prompts is not None
        options = self._options
        warmth = options.temperature if request.temperature is None else request.temperature
        sampling: dict[str, Any] = {
            "max_new_tokens": limit_tokens,
            "temperature": warmth,
            "top_p": options.top_p,
            "top_k": options.top_k,
            "stop_token_ids": sorted(prompts.stop_ids),
        }
        if schema is not None:
            sampling["json_schema"] = json.dumps(schema)
        generation = thread.begin(ids, sampling, int(ticket.urgency))
        try:
            async for piece in generation:
                yield piece
        finally:
            generation.abort()
            await generation.ended()

    def _limit(self, request: WriteRequest, prompt_tokens: int) -> int:
        wanted_tokens = request.max_output_tokens
        if wanted_tokens is None:
            is_talk = request.is_spoken and not request.tools
            wanted_tokens = SPOKEN_TOKENS if is_talk else REPLY_TOKENS
        return min(wanted_tokens, self._options.context_tokens - prompt_tokens - SPARED_TOKENS)


def _make_engine(options: SGLangOptions) -> Any:
    sglang = importlib.import_module("sglang")
    server_args = importlib.import_module("sglang.srt.server_args")
    known = known_arguments(server_args.ServerArgs)
    arguments = engine_arguments(
        options, known, card_memory_mib(options.gpu), can_compile=can_compile_kernels()
    )
    return sglang.Engine(**arguments)


def _failed(error: EngineFailed) -> StageError:
    if error.is_too_long:
        return context_exceeded(str(error))
    if error.is_busy:
        return StageError(
            "llm_rate_limited",
            f"Too many requests wait for the language model: try again later ({error}).",
        )
    return StageError("llm_failed", f"The language model failed this request: {error}")
