"""A language model behind any OpenAI-compatible URL."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pipelines.ports import Progress
from pipelines.runtime.async_stage import AsyncStage
from pipelines.runtime.ticket import Ticket
from pipelines.stages.context_window import (
    ContextTooSmall,
    estimated_size,
    estimated_tokens,
    fit,
)
from pipelines.stages.llm_openai_calls import Demand
from pipelines.stages.llm_openai_client import (
    DRAIN_TIMEOUT_S,
    TOOLS_REFUSED,
    ChatClient,
    OpenAIWriterOptions,
)
from pipelines.stages.llm_openai_wire import (
    Answer,
    Nonsense,
    Refusal,
    is_context_error,
    request_body,
)
from pipelines.types import (
    Finished,
    FinishReason,
    StageError,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageSoFar,
    WriteOutput,
    WriteRequest,
    demands_call,
)

log = logging.getLogger(__name__)

CONTEXT_EXCEEDED = "context_length_exceeded"
MOST_CUTS = 4  # of a conversation that is refused as too long
ROOM_OF_REFUSED = 0.9  # of the size that was refused: the true limit is below it
SIGN_OF_LIFE_S = 2.0  # while an answer is read that may not be shown yet
NOTHING: Mapping[str, Any] = MappingProxyType({})


class OpenAIWriter(AsyncStage[WriteRequest, WriteOutput]):
    """Streams `/chat/completions`. Codes: llm_unreachable, llm_unauthorised, llm_not_found,
    llm_rate_limited, llm_refused, llm_tools_refused, llm_server_error, llm_nonsense,
    llm_broke_off, llm_timeout, llm_bad_tool_schema, tool_call_not_made, tool_call_invalid,
    context_length_exceeded.
    """

    def __init__(self, options: OpenAIWriterOptions, name: str = "llm") -> None:
        super().__init__(name, self._write, failure_code="llm_failed")
        self._options = options
        self._client: ChatClient | None = None
        # What the model can read, by estimate, once a longer conversation was refused.
        self._room_tokens: int | None = None

    async def start(self, progress: Progress) -> None:
        """Open the pool; the server may come up later, of which the log is told. Raises StageError
        for a bad URL."""
        self._client = ChatClient(self._options)
        absence = await self._client.absence()
        if absence is not None:
            log.warning("%s Replies fail until then.", absence.detail)
        await super().start(progress)
        progress(f"{self.name}: {self._options.model} at {self._client.shown_url}")

    async def close(self) -> None:
        await super().close()
        if self._client is not None:
            await self._client.close()

    async def _write(self, request: WriteRequest, ticket: Ticket) -> AsyncIterator[WriteOutput]:
        if request.max_output_tokens == 0:
            yield Finished(FinishReason.LENGTH)  # its cache is its own affair
            return
        answer = self._demand(request) if demands_call(request) else self._fitted(request)
        allowed = _AllowedCalls(request)
        async with aclosing(answer) as outputs:
            async for output in outputs:
                passed = allowed.pass_on(output) if isinstance(output, ToolCallDelta) else output
                if passed is not None:
                    yield passed

    # ---- demanded calls ----------------------------------------------------------------------

    async def _demand(self, request: WriteRequest) -> AsyncGenerator[WriteOutput]:
        """A call that fits its schema, if need be at the second try, or an error."""
        demand = Demand(request)
        problem: StageError | None = None
        try:
            async with aclosing(self._gather(request, {}, demand)) as signs:
                async for sign in signs:
                    yield sign
        except StageError as error:
            if error.code != TOOLS_REFUSED:
                raise
            problem = error  # what such a server is told without tools, it may do
        problem = problem or demand.problem()
        if problem is not None:
            asked, schema = demand.repair()
            try:
                async with aclosing(self._gather(asked, schema, demand)) as signs:
                    async for sign in signs:
                        yield sign
            except StageError:  # a server that cannot do this either has answered already
                raise problem from None
            problem = demand.problem()
        if problem is not None:
            raise problem
        for output in demand.outputs():
            yield output

    async def _gather(
        self, request: WriteRequest, extra: Mapping[str, Any], demand: Demand
    ) -> AsyncGenerator[WriteOutput]:
        """Read a whole answer into `demand`; yields signs of life, as nothing may be shown yet."""
        loop = asyncio.get_running_loop()
        found: list[WriteOutput] = []
        told_s = loop.time()
        async with aclosing(self._fitted(request, extra)) as outputs:
            async for output in outputs:
                found.append(output)
                if loop.time() - told_s >= SIGN_OF_LIFE_S:
                    told_s = loop.time()
                    yield UsageSoFar(demand.usage)
        demand.take(found)
        yield UsageSoFar(demand.usage)

    # ---- the length of the conversation ------------------------------------------------------

    async def _fitted(
        self, request: WriteRequest, extra: Mapping[str, Any] = NOTHING
    ) -> AsyncGenerator[WriteOutput]:
        """The answer to as much of the conversation as the model can read."""
        tries = itertools.count(1)
        room = self._room_tokens
        sent = _cut(request, room)
        while True:
            has_begun = False
            try:
                async with aclosing(self._answered(sent, extra)) as outputs:
                    async for output in outputs:
                        if not has_begun:
                            # Only what a server has taken tells others what it takes.
                            self._room_tokens = _least(self._room_tokens, room)
                        has_begun = True
                        yield output
                return
            except StageError as error:
                is_long = error.code == CONTEXT_EXCEEDED and request.truncation.may_drop
                if has_begun or not is_long or next(tries) == MOST_CUTS:
                    raise
                room = _least(room, int(estimated_size(sent.messages) * ROOM_OF_REFUSED))
                before, sent = sent, _cut(request, room)
                if len(sent.messages) == len(before.messages):
                    raise

    # ---- one request -------------------------------------------------------------------------

    async def _answered(
        self, request: WriteRequest, extra: Mapping[str, Any]
    ) -> AsyncGenerator[WriteOutput]:
        """The outputs of one request as they come."""
        client = self._client
        assert client is not None
        body = request_body(request, self._options.model, {**self._options.extra_body, **extra})
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        answer = Answer(request.request_id)
        told = Usage()
        chars = 0
        shown_s = began_s
        deadline_s = began_s + self._options.first_token_timeout_ms / 1000
        last_s = began_s + self._options.reply_timeout_ms / 1000
        async with aclosing(client.events(body, deadline_s)) as events:
            while True:
                try:
                    async with asyncio.timeout_at(min(deadline_s, last_s)):
                        data = await anext(events, None)
                except TimeoutError:
                    if answer.reason is not None:
                        data = None  # all is said: a server may leave the end of the stream out
                        break
                    raise client.timeout(loop.time() - began_s, started=chars > 0) from None
                if data is None or data == "[DONE]":
                    break
                for output in _read(client, answer, data):
                    text = output.text if isinstance(output, TextDelta) else output.arguments
                    chars += len(text)
                    shown_s = loop.time()
                    yield output
                is_quiet = answer.held_chars and loop.time() - shown_s >= SIGN_OF_LIFE_S
                if is_quiet or (answer.usage != told and answer.reason is None):
                    told = answer.usage
                    shown_s = loop.time()
                    yield UsageSoFar(told)
                if chars + answer.held_chars > self._options.output_limit_chars:
                    answer.reason = FinishReason.LENGTH
                    break
                if answer.reason is not None:
                    deadline_s = min(deadline_s, loop.time() + DRAIN_TIMEOUT_S)
                elif answer.alive:
                    deadline_s = loop.time() + self._options.token_timeout_ms / 1000
            if data is None and answer.reason is None:
                raise client.broke_off("it ended in the middle")
            for output in answer.rest():
                yield output
            yield Finished(answer.ending, answer.usage)
            if data == "[DONE]":
                await self._drain(events)

    @staticmethod
    async def _drain(events: AsyncGenerator[str]) -> None:
        """An answer that is read to its end leaves its connection to the next request."""
        with suppress(TimeoutError, StageError):
            async with asyncio.timeout(DRAIN_TIMEOUT_S):
                async for _ in events:
                    pass


class _AllowedCalls:
    """Lets the calls through that may be made, whatever the server makes of what it was told."""

    def __init__(self, request: WriteRequest) -> None:
        self._names = {tool.name for tool in request.tools}
        self._may_call = request.tool_choice != "none"
        self._may_repeat = request.parallel_tool_calls
        self._places: dict[int, int | None] = {}

    def pass_on(self, piece: ToolCallDelta) -> ToolCallDelta | None:
        if piece.index not in self._places:
            made = sum(place is not None for place in self._places.values())
            may_call = self._may_call and (self._may_repeat or made == 0)
            is_allowed = may_call and piece.name in self._names
            self._places[piece.index] = made if is_allowed else None
        place = self._places[piece.index]
        return None if place is None else replace(piece, index=place)


def _cut(request: WriteRequest, room_tokens: int | None) -> WriteRequest:
    """The request with the messages that probably fit; the last word is the server's."""
    if not request.truncation.may_drop:
        return request
    try:
        kept = fit(request.messages, room_tokens, estimated_tokens, request.truncation)
    except ContextTooSmall:
        return request
    return replace(request, messages=kept)


def _least(room_tokens: int | None, other_tokens: int | None) -> int | None:
    rooms = [room for room in (room_tokens, other_tokens) if room is not None]
    return min(rooms) if rooms else None


def _read(client: ChatClient, answer: Answer, data: str) -> list[TextDelta | ToolCallDelta]:
    try:
        return answer.read(data)
    except Nonsense as nonsense:
        raise client.nonsense(str(nonsense)) from None
    except Refusal as refusal:
        if is_context_error(str(refusal)):
            raise client.too_long(str(refusal)) from None
        raise client.error("llm_server_error", f"reports an error: {refusal}") from None
