"""The chat-completions protocol: the body of a request, and the events of its answer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pipelines.stages.llm_openai_pieces import CallPieces
from pipelines.text.characters import CharacterJoiner, whole_characters
from pipelines.text.reasoning import ReasoningFilter
from pipelines.types import (
    FinishReason,
    Message,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
    Usage,
    WriteRequest,
)

_REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
}


class Nonsense(Exception):
    """The answer does not follow the protocol; the text says how."""


class Refusal(Exception):
    """The server reports an error inside its stream; the text is the server's."""


def request_body(request: WriteRequest, model: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON body. `extra` adds to it; a None there removes a field that a server dislikes."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [_message(message) for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tool_choice"] = _tool_choice(request.tool_choice)
        if not request.parallel_tool_calls:
            body["parallel_tool_calls"] = False  # named where it matters: some servers know it not
    if request.max_output_tokens is not None:
        body["max_tokens"] = request.max_output_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    body |= extra
    return {name: value for name, value in body.items() if value is not None}


def _message(message: Message) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        wire["content"] = message.text or None
        wire["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.call_id is not None:
        wire["tool_call_id"] = message.call_id
    return wire


def _arguments(written: str) -> str:
    """A call's arguments as a server takes them back.

    Many parse them and refuse a whole conversation for one call that the model once wrote badly.
    """
    try:
        is_object = isinstance(json.loads(written), dict)
    except (ValueError, RecursionError):
        is_object = False
    return written if is_object else json.dumps({"invalid_json": written})


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": json.loads(tool.parameters_json),
    }
    return {"type": "function", "function": function}


def _tool_choice(choice: str) -> str | dict[str, Any]:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


@dataclass(slots=True)
class Answer:
    """What has been read of a streamed answer.

    alive: whether the last event showed the model at work, if only by unspoken reasoning.
    """

    request_id: str
    reason: FinishReason | None = None
    usage: Usage = field(default_factory=Usage)
    alive: bool = False
    _text: CharacterJoiner = field(default_factory=CharacterJoiner)
    _reasoning: ReasoningFilter = field(default_factory=ReasoningFilter)
    _refuses: bool = False  # the model declines; what it says instead is its answer
    _calls: CallPieces = field(init=False)

    def __post_init__(self) -> None:
        self._calls = CallPieces(self.request_id)

    @property
    def held_chars(self) -> int:
        """Of calls that wait for the end of the one before them."""
        return self._calls.held_chars

    def read(self, data: str) -> list[TextDelta | ToolCallDelta]:
        """One event's data, a JSON text. Raises Nonsense or Refusal."""
        self.alive = False
        try:
            event: Any = json.loads(data)
        except (ValueError, RecursionError):  # a stranger may nest it as deep as they like
            raise Nonsense(f"an event that is not JSON: {excerpt(data)}") from None
        if not isinstance(event, dict):
            raise Nonsense(f"an event that is not an object: {excerpt(data)}")
        if event.get("error"):
            raise Refusal(error_text(data))
        if isinstance(usage := event.get("usage"), dict):
            self.usage = _usage(usage)
        choices = event.get("choices")
        if choices is None and ("choices" in event or _is_aside(event)):
            choices = []
        if not isinstance(choices, list):
            raise Nonsense(f"an event without choices: {excerpt(data)}")
        # The last event has the usage alone. Only the first of several answers is spoken.
        choice = choices[0] if choices else {}
        if not isinstance(choice, dict):
            raise Nonsense(f"a choice that is not an object: {excerpt(data)}")
        delta = choice.get("delta")
        outputs = self._read_delta(delta) if isinstance(delta, dict) else []
        if isinstance(reason := choice.get("finish_reason"), str):
            self.reason = _REASONS.get(reason, FinishReason.STOP)
        return outputs

    @property
    def ending(self) -> FinishReason:
        """How the answer ended, as far as the server has said so."""
        if self._refuses and self.reason in (None, FinishReason.STOP):
            return FinishReason.CONTENT_FILTER
        return self.reason or FinishReason.STOP

    def rest(self) -> list[TextDelta | ToolCallDelta]:
        """What was held back, once the answer has ended."""
        text = self._reasoning.finish()
        is_cut = self.ending in (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)
        return [*([TextDelta(text)] if text else []), *self._calls.rest(is_cut=is_cut)]

    def _read_delta(self, delta: dict[str, Any]) -> list[TextDelta | ToolCallDelta]:
        outputs: list[TextDelta | ToolCallDelta] = []
        content = _content(delta)
        if text := self._reasoning.feed(self._text.feed(content)):
            outputs.append(TextDelta(text))
        self._refuses = self._refuses or bool(delta.get("refusal"))
        outputs += self._calls.read(delta)
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        self.alive = self._calls.alive or bool(outputs or reasoning or content)
        return outputs


def _is_aside(event: dict[str, Any]) -> bool:
    """An event that tells nothing of an answer: a count alone, or a sign of life."""
    return isinstance(event.get("usage"), dict) or event.get("type") == "ping"


def _content(delta: dict[str, Any]) -> str:
    """The text of a delta, that of a refusal included; some servers send it as a list of parts."""
    content = delta.get("content")
    parts = content if isinstance(content, list) else [content]
    texts = [
        part.get("text") if isinstance(part, dict) and part.get("type") == "text" else part
        for part in (*parts, delta.get("refusal"))
    ]
    return "".join(text for text in texts if isinstance(text, str))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long a server asks to wait: seconds, or a date (RFC 9110, 10.2.3); None: it does not.

    A date counts from the server's own, because clocks differ.
    """
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        until, now = _date(value), _date(headers.get("date", "")) or datetime.now(UTC)
        return max(0.0, (until - now).total_seconds()) if until is not None else None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)


def error_text(body: str) -> str:
    """The message inside an error body, or its beginning."""
    try:
        error: Any = json.loads(body)
    except ValueError:
        return excerpt(body)
    while isinstance(error, dict):
        error = error.get("error") or error.get("message") or error.get("detail")
    return excerpt(error if isinstance(error, str) else body)


def excerpt(text: str, most_chars: int = 160) -> str:
    """One line, short enough for a message."""
    line = whole_characters(" ".join(text.split()))
    return line if len(line) <= most_chars else f"{line[:most_chars]}…"


# How servers say that a conversation is too long: OpenAI and those that follow it, vLLM, TGI,
# several hosted services.
_TOO_LONG = re.compile(
    r"context[_ -]?(length|window|size|limit)|maximum (context|prompt|input)"
    r"|too many (input )?tokens|(prompt|input|request) (is )?too (long|large)"
    r"|longer than the maximum model length"
    r"|inputs?`? tokens \+ `?max_new_tokens`? must be|must have less than \d+ tokens"
    r"|exceeds the maximum number of tokens allowed|reduce the length of the messages",
    re.IGNORECASE,
)
# A limit of the answer alone is not met by a shorter conversation.
_ANSWER_TOO_LONG = re.compile(r"\W*max_(completion_)?tokens\b.{0,40}is too large", re.IGNORECASE)
_TOOLS_REFUSED = re.compile(
    r"\btools?\b|tool[_-](choice|call|use)|function[ _-]call", re.IGNORECASE
)


def is_context_error(body: str) -> bool:
    """Whether a refusal says that the conversation is longer than the model can read."""
    if _ANSWER_TOO_LONG.match(error_text(body)):
        return False
    return _TOO_LONG.search(body) is not None


def is_tool_error(body: str) -> bool:
    """Whether the refusal of a request with tools is about them."""
    return _TOOLS_REFUSED.search(body) is not None


def _usage(usage: dict[str, Any]) -> Usage:
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    input_tokens = _count(usage.get("prompt_tokens"))
    return Usage(
        input_tokens=input_tokens,
        cached_tokens=min(_count(details.get("cached_tokens")), input_tokens),
        output_tokens=_count(usage.get("completion_tokens")),
    )


def _count(value: object) -> int:
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0
