"""The language model in this process: llama.cpp, streaming, with a prefix cache."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipelines.ports import Progress
from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.self_scheduled import SelfScheduledStage
from pipelines.runtime.ticket import Ticket
from pipelines.stages.context_window import ContextTooSmall, context_exceeded, fit
from pipelines.stages.llama_engine import EngineFailed, LlamaEngine
from pipelines.stages.llama_reply import LlamaReply, Pace, Start
from pipelines.stages.llama_tools import (
    answered,
    as_openai,
    instructions,
    message_as_openai,
    offered,
    rounds,
)
from pipelines.stages.spoken_length import SpokenLength
from pipelines.stages.tool_schema import BadSchema, parameters_of
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    StageError,
    ToolSpec,
    Urgency,
    Usage,
    UsageSoFar,
    WriteOutput,
    WriteRequest,
    demands_call,
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

PROBE = ToolSpec("probe_of_template", "", "{}")
TAG = "<tool_call>\n"  # a template that teaches this is followed
MARKUP = ("<tool_call>", "{", '{"', "{{", "```")  # with which these models begin a call
MOST_ROUNDS = 4  # of calls of its own accord since the user spoke: a small model finds no end
# Stands behind a result where no further call may be made: small models go on calling otherwise.
IN_WORDS = Message("system", "Answer the user in words now.")
CUT_OFF = {"type": "object"}  # stands for parameters that the engine must not follow
REPEATED = ("auto", "required")  # choices that leave open how many calls there are

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
        self._tells_tools = False  # whether the model's template does
        self._tag = ""  # what the template has the model write before a call
        self._count: Callable[[str], int] = lru_cache(COUNTED_TEXTS)(self._count_tokens)

        def load(progress: Progress) -> LlamaWriter:
            file = resolve(MODELS[model], path)
            progress(f"language model: loading {file.name}")
            try:
                self._engine = LlamaEngine(file, threads, context_tokens)
                self._learn_template(self._engine)
                self._warm(self._engine, instructions)
            except EngineFailed as error:
                raise StageError(
                    "llm_failed", f"The language model {file} could not be loaded: {error}"
                ) from error
            return self

        super().__init__(
            "llm",
            load,
            lambda writer, request, ticket, emit: writer._answer(request, ticket, emit),
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

    def _answer(
        self, request: WriteRequest, ticket: Ticket, emit: Callable[[WriteOutput], None]
    ) -> None:
        try:
            self._write(request, ticket, emit)
        except EngineFailed as error:
            raise _failed(error) from error

    def _write(
        self, request: WriteRequest, ticket: Ticket, emit: Callable[[WriteOutput], None]
    ) -> None:
        engine = self._engine
        assert engine is not None
        length = SpokenLength()
        has_given_way = False

        def tell(output: WriteOutput) -> None:
            nonlocal has_given_way
            emit(output)
            has_given_way = isinstance(output, UsageSoFar)

        is_bounded = request.is_spoken and request.max_output_tokens is None
        start = Start(tell)

        def say(text: str) -> None:
            start.write(length.cut(text) if is_bounded else text)

        def is_outranked() -> bool:
            return self._token is not None and self._token.outranked(ticket)

        def pause() -> None:
            nonlocal has_given_way
            ticket.check()
            # What is told at the end of a quantum has given equals their turn already.
            if self._token is not None and (is_outranked() or not has_given_way):
                self._token.give_way(ticket)
            has_given_way = False

        sampling = dict(SAMPLING)
        if request.temperature is not None:
            sampling["temperature"] = request.temperature
        pace = Pace(
            sampling,
            pause,
            lambda: ticket.aborted,
            is_outranked,
            lambda: ticket.urgency is Urgency.DRAFT,
        )
        is_free = request.tool_choice == "auto"
        known = answered(request.messages) if is_free else set[tuple[str, str]]()
        tools = offered(request.tools, request.tool_choice)
        if is_free and rounds(request.messages) >= MOST_ROUNDS:
            tools = ()
        limit_tokens = _limit(request, may_call=bool(tools))
        used = Usage()
        while True:
            # The prompt has all tools, whichever may be called now: its prefix stays cached.
            closing: tuple[Message, ...] = ()
            if request.tools and not tools:
                is_told = bool(request.messages) and request.messages[-1].role == "tool"
                closing = (IN_WORDS,) if is_told else ()
                forbidden = _forbidden(engine, MARKUP if is_told else MARKUP[:1])
                pace = replace(pace, sampling={**sampling, "logit_bias": forbidden})
            prompt, tag = self._prompt(engine, request, closing)
            left_tokens = limit_tokens - used.output_tokens
            reply = LlamaReply(engine, prompt, left_tokens, pace, tell, used, known)
            if limit_tokens == 0:
                reply.read()
                break
            reply.write(
                tools,
                say,
                lambda: length.is_enough,
                must_call=demands_call(request),
                tag=tag,
                # A named tool is to be called once.
                may_repeat=request.parallel_tool_calls and request.tool_choice in REPEATED,
                known=_known_tools(request),
            )
            used = reply.usage
            if not reply.has_repeated:
                break
            tools = ()  # it asks again for what it has been told: now it is to say it
        if limit_tokens == 0 or reply.hit_limit:
            reason = FinishReason.LENGTH
        else:
            reason = FinishReason.TOOL_CALLS if reply.has_called else FinishReason.STOP
        emit(Finished(reason, reply.usage))

    def _prompt(
        self, engine: LlamaEngine, request: WriteRequest, closing: tuple[Message, ...]
    ) -> tuple[list[int], str]:
        """The prompt, and what this model writes before a call. closing: stands at the end.

        What the messages may fill is settled by the context and by what is reserved for a reply.
        """
        messages = request.messages
        if not messages:
            raise StageError("llm_no_messages", "The language model was asked without a message.")
        try:
            functions = [_function(tool) for tool in request.tools]
        except ValueError as error:
            raise StageError(
                "llm_bad_tool_schema",
                f"The parameters of a tool are no JSON ({error}): correct them.",
            ) from error
        room_tokens = self._room_tokens - sum(self._count(str(entry)) for entry in functions)
        while True:
            try:
                kept = fit(messages, room_tokens, self._count, request.truncation)
            except ContextTooSmall:
                raise context_exceeded(f"{self._room_tokens} tokens") from None
            is_read_only = request.max_output_tokens == 0
            shown = kept if is_read_only else (*kept, *closing)
            rendered, tag = self._render(engine, shown, request.tools, functions)
            if is_read_only:
                rendered = _before_end(rendered, kept[-1].text)
            prompt = engine.tokenize(rendered, special=True)
            if len(prompt) <= self._room_tokens:
                return prompt, tag
            room_tokens //= 2  # this template adds more than was reckoned with

    def _render(
        self,
        engine: LlamaEngine,
        messages: tuple[Message, ...],
        tools: tuple[ToolSpec, ...],
        functions: Sequence[dict[str, Any]],
    ) -> tuple[str, str]:
        """A prompt, and what the model writes before a call."""
        if not tools:
            return engine.render([message_as_openai(m) for m in messages], []), ""
        if self._tells_tools:
            # The engine refuses schemas that it does not know, though they are none of its affair.
            with suppress(EngineFailed):
                return engine.render([message_as_openai(m) for m in messages], functions), self._tag
        told = Message("system", instructions(tools))
        if messages[0].role == "system":
            told = replace(told, text=f"{messages[0].text}\n\n{told.text}")
            messages = messages[1:]
        return engine.render([message_as_openai(m) for m in (told, *messages)], []), ""

    def _learn_template(self, engine: LlamaEngine) -> None:
        """See what the model's template makes of a tool: in a prompt, a name may be anybody's."""
        asked = [message_as_openai(Message("user", "Hello."))]
        with suppress(EngineFailed):
            rendered = engine.render(asked, [as_openai(PROBE)])
            self._tells_tools = f'"{PROBE.name}"' in rendered
            self._tag = TAG if TAG in rendered else ""

    def _count_tokens(self, text: str) -> int:
        assert self._engine is not None
        return len(self._engine.tokenize(text)) if text else 0

    def _warm(self, engine: LlamaEngine, instructions: str) -> None:
        messages = [{"role": "user", "content": "Hello."}]
        if instructions:
            messages.insert(0, {"role": "system", "content": instructions})
        prompt = engine.tokenize(engine.render(messages, []), special=True)
        engine.complete(prompt, 1, SAMPLING, lambda text: None, lambda: None, lambda: False)


def _function(tool: ToolSpec) -> dict[str, Any]:
    """A tool as templates expect it. Raises ValueError for a schema that is no JSON.

    Some templates have the engine follow the schema, which must not be without end.
    """
    entry = as_openai(tool)
    try:
        parameters_of(tool)
    except BadSchema:
        entry["function"]["parameters"] = CUT_OFF
    return entry


def _known_tools(request: WriteRequest) -> set[str] | None:
    """The tools that the model has been told of; None: not even of calls."""
    offered_names = {tool.name for tool in request.tools}
    called = {call.name for message in request.messages for call in message.tool_calls}
    return offered_names or called or None


def _forbidden(engine: LlamaEngine, markup: Sequence[str]) -> list[tuple[int, bool]]:
    """Forbids the tokens that begin a call."""
    ids = {engine.tokenize(text, special=True, goes_on=True)[0] for text in markup}
    return [(token, False) for token in sorted(ids)]


def _before_end(rendered: str, last_text: str) -> str:
    """A prompt without what its template writes after the last text, which may go on."""
    place = rendered.rfind(last_text) if last_text else -1
    return rendered if place < 0 else rendered[: place + len(last_text)]


def _limit(request: WriteRequest, *, may_call: bool) -> int:
    limit_tokens = request.max_output_tokens
    if limit_tokens is None:
        limit_tokens = SPOKEN_TOKENS if request.is_spoken and not may_call else REPLY_MAX_TOKENS
    return max(0, min(limit_tokens, REPLY_MAX_TOKENS))


def _failed(error: EngineFailed) -> StageError:
    return StageError("llm_failed", f"The language model failed this request: {error}")
