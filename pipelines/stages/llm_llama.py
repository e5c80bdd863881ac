"""The language model in this process: llama.cpp, streaming, with a prefix cache."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipelines.ports import Progress
from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.self_scheduled import SelfScheduledStage
from pipelines.runtime.ticket import Ticket
from pipelines.stages.llama_context import ContextTooSmall, fit
from pipelines.stages.llama_engine import EngineFailed, LlamaEngine, grammar_of
from pipelines.stages.llama_tools import (
    CallReader,
    as_openai,
    instructions,
    message_as_openai,
    offered,
    schema_of_call,
)
from pipelines.stages.spoken_length import SpokenLength
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    StageError,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
    Usage,
    WriteOutput,
    WriteRequest,
)
from pipelines.weights import resolve
from pipelines.weights.catalogue import QWEN_HALF_B, QWEN_ONE_AND_A_HALF_B, SMOLLM2

MODELS = {
    "qwen2.5-coder-0.5b": QWEN_HALF_B,
    "qwen2.5-coder-1.5b": QWEN_ONE_AND_A_HALF_B,
    "smollm2-135m": SMOLLM2,
}
DEFAULT_MODEL = "qwen2.5-coder-0.5b"

CONTEXT_TOKENS = 4096  # about half an hour of talk; more costs memory and prefill
SPOKEN_TOKENS = 160  # of a spoken reply without a limit of its own: close to a minute
REPLY_MAX_TOKENS = 1024  # whatever the request names: a small model may repeat itself for ever
STALL_TIMEOUT_MS = 60_000  # a full context is evaluated in half a minute on two slow cores
REQUESTS_AT_ONCE = 2  # so that a reply can come between the quanta of a draft
COUNTED_TEXTS = 4096  # messages whose length in tokens is remembered

SAMPLING = {"temperature": 0.3, "top_p": 0.9, "repeat_penalty": 1.05}


class LlamaWriter(SelfScheduledStage[WriteRequest, WriteOutput]):
    """`pipelines.ports.Writer` on a GGUF file.

    model: a name of `MODELS`; path: a GGUF file that is used instead.
    instructions: the system message that most prompts begin with; it is evaluated at the start, so
    that the first reply need not wait for it.
    A request with `max_output_tokens` 0 only brings its prompt into the cache.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        path: Path | None = None,
        *,
        cpu: CpuToken | None = None,
        threads: int = 2,
        context_tokens: int = CONTEXT_TOKENS,
        instructions: str = "",
    ) -> None:
        if model not in MODELS:
            raise ValueError(f"There is no model {model!r}; there are: {', '.join(MODELS)}.")
        self._engine: LlamaEngine | None = None
        self._room_tokens = context_tokens - REPLY_MAX_TOKENS
        self._token = cpu
        self._count: Callable[[str], int] = lru_cache(COUNTED_TEXTS)(self._count_tokens)

        def load(progress: Progress) -> LlamaWriter:
            file = resolve(MODELS[model], path)
            progress(f"language model: loading {file.name}")
            try:
                self._engine = LlamaEngine(file, threads, context_tokens)
                self._warm(self._engine, instructions)
            except EngineFailed as error:
                raise StageError(
                    "llm_failed", f"The language model {file} could not be loaded: {error}"
                ) from error
            return self

        super().__init__(
            "llm",
            load,
            lambda writer, request, ticket, emit: writer._write(request, ticket, emit),
            cpu,
            # Without a token nothing orders the threads, and two would only slow each other.
            threads=1 if cpu is None else REQUESTS_AT_ONCE,
            stall_timeout_ms=STALL_TIMEOUT_MS,
        )

    async def close(self) -> None:
        await super().close()
        engine, self._engine = self._engine, None
        if engine is not None:
            await asyncio.to_thread(engine.close)

    def _write(
        self, request: WriteRequest, ticket: Ticket, emit: Callable[[WriteOutput], None]
    ) -> None:
        engine = self._engine
        assert engine is not None
        tools = offered(request.tools, request.tool_choice)
        must_call = bool(tools) and request.tool_choice not in ("auto", "none")
        try:
            prompt = self._prompt(engine, request, tools)
        except EngineFailed as error:
            raise _failed(error) from error
        reader = CallReader(tools)
        start = _Start(emit)
        length = SpokenLength()
        is_bounded = request.is_spoken and request.max_output_tokens is None

        def say(text: str) -> None:
            start.write(length.cut(text) if is_bounded else text)

        def pause() -> None:
            ticket.check()
            if self._token is not None:
                self._token.give_way(ticket)

        sampling = dict(SAMPLING)
        if request.temperature is not None:
            sampling["temperature"] = request.temperature
        try:
            completion = engine.complete(
                prompt,
                _limit(request, may_call=bool(tools)),
                sampling,
                lambda text: say(reader.feed(text)),
                pause,
                lambda: ticket.aborted,
                _grammar(tools) if must_call else None,
                lambda: length.is_enough,
            )
        except EngineFailed as error:
            raise _failed(error) from error
        calls, text = reader.finish()
        if must_call and not calls and not completion.hit_limit:
            raise _bad_schema("the model could not be held to them")
        say(text)
        for index, call in enumerate(calls):
            emit(ToolCallDelta(index, call.call_id, call.name, call.arguments))
        reason = FinishReason.LENGTH if completion.hit_limit else FinishReason.STOP
        usage = Usage(completion.input_tokens, completion.cached_tokens, completion.output_tokens)
        emit(Finished(FinishReason.TOOL_CALLS if calls else reason, usage))

    def _prompt(
        self, engine: LlamaEngine, request: WriteRequest, tools: tuple[ToolSpec, ...]
    ) -> list[int]:
        messages = request.messages
        if not messages:
            raise StageError("llm_no_messages", "The language model was asked without a message.")
        try:
            functions = [as_openai(tool) for tool in tools]
        except ValueError as error:
            raise _bad_schema(str(error)) from error
        room_tokens = self._room_tokens - sum(self._count(str(entry)) for entry in functions)
        while True:
            try:
                kept = fit(messages, room_tokens, self._count)
            except ContextTooSmall:
                raise StageError(
                    "llm_context_full",
                    f"The instructions, the tools and the last message do not fit into the "
                    f"{self._room_tokens} tokens that the language model can read: shorten them, "
                    "or set a larger context.",
                ) from None
            rendered = self._render(engine, kept, tools, functions)
            if request.max_output_tokens == 0:
                rendered = _before_end(rendered, kept[-1].text)
            prompt = engine.tokenize(rendered, special=True)
            if len(prompt) <= self._room_tokens:
                return prompt
            room_tokens //= 2  # this template adds more than was reckoned with

    def _render(
        self,
        engine: LlamaEngine,
        messages: tuple[Message, ...],
        tools: tuple[ToolSpec, ...],
        functions: list[dict[str, Any]],
    ) -> str:
        rendered = engine.render([message_as_openai(m) for m in messages], functions)
        if all(tool.name in rendered for tool in tools):
            return rendered
        told = Message("system", instructions(tools))
        if messages[0].role == "system":
            told = dataclasses.replace(told, text=f"{messages[0].text}\n\n{told.text}")
            messages = messages[1:]
        return engine.render([message_as_openai(m) for m in (told, *messages)], [])

    def _count_tokens(self, text: str) -> int:
        assert self._engine is not None
        return len(self._engine.tokenize(text)) if text else 0

    def _warm(self, engine: LlamaEngine, instructions: str) -> None:
        messages = [{"role": "user", "content": "Hello."}]
        if instructions:
            messages.insert(0, {"role": "system", "content": instructions})
        prompt = engine.tokenize(engine.render(messages, []), special=True)
        engine.complete(prompt, 1, SAMPLING, lambda text: None, lambda: None, lambda: False)


class _Start:
    """Passes text on, without the white space that models put before their first word."""

    def __init__(self, emit: Callable[[WriteOutput], None]) -> None:
        self._emit = emit
        self._started = False

    def write(self, text: str) -> None:
        if not self._started:
            text = text.lstrip()
        if text:
            self._started = True
            self._emit(TextDelta(text))


def _before_end(rendered: str, last_text: str) -> str:
    """A prompt without what its template writes after the last text, which may go on."""
    place = rendered.rfind(last_text) if last_text else -1
    return rendered if place < 0 else rendered[: place + len(last_text)]


def _limit(request: WriteRequest, *, may_call: bool) -> int:
    limit_tokens = request.max_output_tokens
    if limit_tokens is None:
        limit_tokens = SPOKEN_TOKENS if request.is_spoken and not may_call else REPLY_MAX_TOKENS
    return max(0, min(limit_tokens, REPLY_MAX_TOKENS))


def _grammar(tools: tuple[ToolSpec, ...]) -> str:
    try:
        return grammar_of(schema_of_call(tools))
    except (EngineFailed, ValueError) as error:
        raise _bad_schema(str(error)) from error


def _failed(error: EngineFailed) -> StageError:
    return StageError("llm_failed", f"The language model failed this request: {error}")


def _bad_schema(cause: str) -> StageError:
    return StageError(
        "llm_bad_tool_schema",
        f"The language model cannot use the parameters of these tools ({cause}): correct their "
        "JSON Schema.",
    )
