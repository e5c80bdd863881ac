"""Demanded calls: the model is put into the middle of one, and held to the schema of the tool.

What it writes is judged all the same before anybody is told of it: an engine may know less of JSON
Schema than the tool's author, and one without a grammar holds the model to nothing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from pipelines.stages.llama_tools import offered
from pipelines.stages.llm_sglang_calls import OPENING
from pipelines.stages.llm_sglang_engine import EngineFailed, Piece
from pipelines.stages.llm_sglang_json import ObjectEnd
from pipelines.stages.llm_sglang_prompt import Prompts
from pipelines.stages.llm_sglang_reply import TOLD_EVERY_TOKENS, new_call_id, usage_of
from pipelines.stages.llm_sglang_text import TextStream
from pipelines.stages.tool_schema import BadSchema, invalid_call, parameters_of, refuse_schema
from pipelines.types import (
    Finished,
    FinishReason,
    StageError,
    ToolCallDelta,
    ToolSpec,
    Usage,
    UsageSoFar,
    WriteOutput,
    WriteRequest,
)

MOST_TRIES = 3  # at a call that nothing holds to its schema
NAME_MOST_TOKENS = 64  # the wire allows names of 64 characters


class Run(Protocol):
    """Has the engine go on behind these ids: at most so many tokens, by this schema or by none."""

    def __call__(
        self, ids: Sequence[int], limit_tokens: int, schema: Mapping[str, Any] | None
    ) -> AsyncGenerator[Piece]: ...


class Demand:
    """Answers a request that demands a call with one call, or fails.

    follows_schemas: whether the engine can hold the model to a schema.
    """

    def __init__(
        self, prompts: Prompts, request: WriteRequest, run: Run, *, follows_schemas: bool
    ) -> None:
        self._prompts = prompts
        self._run = run
        self._tools = offered(request.tools, request.tool_choice)
        self._follows_schemas = follows_schemas
        for tool in self._tools:
            try:
                parameters_of(tool)
            except BadSchema as error:
                raise refuse_schema(tool, error) from None
        self._usage = Usage()
        self._written = ""
        self._is_cut = False

    async def outputs(
        self, prompt: Sequence[int], limit_tokens: int
    ) -> AsyncGenerator[WriteOutput]:
        """Signs of life, the call, and its end. Raises EngineFailed and StageError."""
        tries = 0
        problem = "they are missing"
        tool = self._tools[0]
        while tries < MOST_TRIES:
            tries += 1
            opening = f'{OPENING}\n{{"name": '
            if len(self._tools) > 1:
                async with aclosing(self._choose(prompt, opening)) as signs:
                    async for sign in signs:
                        yield sign
                chosen = self._chosen()
                if chosen is None:
                    continue
                tool = chosen
            opening += f'{json.dumps(tool.name, ensure_ascii=False)}, "arguments": '
            left_tokens = limit_tokens - self._usage.output_tokens
            async with aclosing(self._fill_in(prompt, opening, tool, left_tokens)) as signs:
                async for sign in signs:
                    yield sign
            found = None if self._is_cut else parameters_of(tool).problem(self._written)
            if found is None:
                yield ToolCallDelta(0, new_call_id(), tool.name, self._written)
                reason = FinishReason.LENGTH if self._is_cut else FinishReason.TOOL_CALLS
                yield Finished(reason, self._usage)
                return
            problem = found
        if not self._written:
            raise StageError(
                "tool_call_not_made",
                "The language model was told to call a tool, and chose none of them. Use a more "
                "capable model.",
            )
        raise invalid_call(tool.name, problem)

    def _choose(self, prompt: Sequence[int], opening: str) -> AsyncGenerator[WriteOutput]:
        names = {"type": "string", "enum": [tool.name for tool in self._tools]}
        return self._pass([*prompt, *self._prompts.encode(opening)], NAME_MOST_TOKENS, names)

    def _chosen(self) -> ToolSpec | None:
        try:
            name, _ = json.JSONDecoder().raw_decode(self._written)
        except ValueError:
            name = None
        self._written = ""
        return next((tool for tool in self._tools if tool.name == name), None)

    def _fill_in(
        self, prompt: Sequence[int], opening: str, tool: ToolSpec, limit_tokens: int
    ) -> AsyncGenerator[WriteOutput]:
        schema = parameters_of(tool).schema
        return self._pass([*prompt, *self._prompts.encode(opening)], limit_tokens, schema)

    async def _pass(
        self, ids: Sequence[int], limit_tokens: int, schema: Mapping[str, Any]
    ) -> AsyncGenerator[WriteOutput]:
        """One run of the engine, gathered in `_written`; yields what it has used."""
        if limit_tokens <= 0:
            self._is_cut = True
            return
        if self._follows_schemas:
            try:
                async with aclosing(self._gather(ids, limit_tokens, schema)) as signs:
                    async for sign in signs:
                        yield sign
                return
            except EngineFailed as error:
                if error.is_too_long or error.is_busy:
                    raise
                self._follows_schemas = False  # it does not know this schema
        async with aclosing(self._gather(ids, limit_tokens, None)) as signs:
            async for sign in signs:
                yield sign

    async def _gather(
        self, ids: Sequence[int], limit_tokens: int, schema: Mapping[str, Any] | None
    ) -> AsyncGenerator[WriteOutput]:
        text = TextStream(self._prompts.decode)
        end = ObjectEnd()
        before = self._usage
        self._written = ""
        self._is_cut = False
        told_tokens = 0
        async with aclosing(self._run(ids, limit_tokens, schema)) as pieces:
            async for piece in pieces:
                kept = [number for number in piece.ids if number not in self._prompts.stop_ids]
                new = text.feed(kept)
                if not self._written:
                    new = new.lstrip()
                self._written += new[: end.feed(new)] if new else ""
                self._usage = _together(before, usage_of(piece))
                self._is_cut = piece.end == "length" and not end.is_reached
                if piece.output_tokens - told_tokens >= TOLD_EVERY_TOKENS or not told_tokens:
                    told_tokens = piece.output_tokens
                    yield UsageSoFar(self._usage)
                if end.is_reached:
                    return


def _together(before: Usage, now: Usage) -> Usage:
    """A later pass reads again what is in the cache: only what it writes is new."""
    if not before.input_tokens:
        return now
    return Usage(
        before.input_tokens, before.cached_tokens, before.output_tokens + now.output_tokens
    )
