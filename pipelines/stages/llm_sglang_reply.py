"""One reply, from the tokens of the engine to words and calls. Does no I/O."""

from __future__ import annotations

import uuid

from pipelines.stages.llama_tools import offered
from pipelines.stages.llm_sglang_calls import CallEnd, CallPiece, CallReader, Found, Words
from pipelines.stages.llm_sglang_engine import Piece
from pipelines.stages.llm_sglang_prompt import Prompts
from pipelines.stages.llm_sglang_text import TextStream
from pipelines.stages.spoken_length import SpokenLength
from pipelines.types import (
    Finished,
    FinishReason,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageSoFar,
    WriteOutput,
    WriteRequest,
)

MOST_CALLS = 16  # in one reply: a model that finds no end is a matter of money
TOLD_EVERY_TOKENS = 8  # how far the usage that a broken off request is reckoned by may be behind


class Reply:
    """Takes pieces as they come. is_enough: the engine need not go on."""

    def __init__(self, prompts: Prompts, request: WriteRequest) -> None:
        tools = offered(request.tools, request.tool_choice)
        self._stop_ids = prompts.stop_ids
        self._text = TextStream(prompts.decode)
        self._calls = CallReader({tool.name for tool in tools})
        self._most_calls = MOST_CALLS if request.parallel_tool_calls else 1
        self._length = (
            SpokenLength() if request.is_spoken and request.max_output_tokens is None else None
        )
        self._has_begun = False
        self._begun_calls = 0
        self._ended_calls = 0
        self._end: str | None = None
        self._told_tokens = 0
        self.usage = Usage()
        self.is_enough = False

    def feed(self, piece: Piece) -> list[WriteOutput]:
        outputs: list[WriteOutput] = []
        ids = [number for number in piece.ids if number not in self._stop_ids]
        for found in self._calls.feed(self._text.feed(ids)):
            self._take(found, outputs)
        if piece.end is not None:
            self._end = piece.end
            for found in self._calls.rest():
                self._take(found, outputs)
        self.usage = usage_of(piece)
        written_tokens = piece.output_tokens - self._told_tokens
        if self._told_tokens == 0 or written_tokens >= TOLD_EVERY_TOKENS:
            self._told_tokens = piece.output_tokens
            outputs.append(UsageSoFar(self.usage))
        return outputs

    def finished(self) -> Finished:
        is_cut = self._end == "length" and not self.is_enough
        if self._ended_calls and not (is_cut and self._begun_calls > self._ended_calls):
            reason = FinishReason.TOOL_CALLS  # words or a call that hardly began take nothing away
        elif is_cut:
            reason = FinishReason.LENGTH
        else:
            reason = FinishReason.TOOL_CALLS if self._begun_calls else FinishReason.STOP
        return Finished(reason, self.usage)

    def _take(self, found: Found, outputs: list[WriteOutput]) -> None:
        if self.is_enough:
            return
        match found:
            case Words(text):
                self._say(text, outputs)
            case CallPiece(name, arguments):
                call_id = ""
                if name:
                    call_id = new_call_id()
                    self._begun_calls += 1
                outputs.append(ToolCallDelta(self._begun_calls - 1, call_id, name, arguments))
            case CallEnd():
                self._ended_calls += 1
                self.is_enough = self._ended_calls == self._most_calls

    def _say(self, text: str, outputs: list[WriteOutput]) -> None:
        if self._begun_calls:
            # Words behind a call answer what nobody has said yet.
            self.is_enough = bool(text.strip())
            return
        if self._length is not None:
            text = self._length.cut(text)
            self.is_enough = self._length.is_enough
        if not self._has_begun:
            text = text.lstrip()  # models put white space before their first word
        if text:
            self._has_begun = True
            outputs.append(TextDelta(text))


def usage_of(piece: Piece) -> Usage:
    cached_tokens = min(piece.cached_tokens, piece.input_tokens)
    return Usage(piece.input_tokens, cached_tokens, piece.output_tokens)


def new_call_id() -> str:
    return f"call_{uuid.uuid4().hex[:16]}"
