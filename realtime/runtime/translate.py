"""The machine's words to the stages' words."""

from __future__ import annotations

from pipelines.types import (
    Message,
    RecogniseRequest,
    ReplyRequest,
    ToolCall,
    ToolSpec,
    Truncation,
    Urgency,
)
from realtime.session.effects import (
    Listen,
    PrepareReply,
    PromptMessage,
    Recognise,
    RecogniseHandle,
    StartReply,
)
from realtime.session.settings import Tool, ToolChoice, ToolMode, TruncationMode
from realtime.session.settings import Truncation as ChosenTruncation


def recognise_request(effect: Recognise | RecogniseHandle) -> RecogniseRequest:
    return RecogniseRequest(
        request_id=effect.request, language=effect.language, prompt=effect.prompt or ""
    )


def listen_request(effect: Listen) -> RecogniseRequest:
    """Speech that goes on is heard in passing, unless somebody waits for the words."""
    return RecogniseRequest(
        request_id=effect.request,
        urgency=Urgency.FIRST_AUDIO if effect.is_urgent else Urgency.DRAFT,
        language=effect.language,
        prompt=effect.prompt or "",
        wants_partials=True,
    )


def prepare_request(effect: PrepareReply) -> ReplyRequest:
    return ReplyRequest(
        request_id=effect.request,
        messages=tuple(_message(message) for message in effect.messages),
        urgency=Urgency.DRAFT,
        speak=False,
        voice="",
        tools=_tools(effect.tools),
        tool_choice=_tool_choice(effect.tool_choice),
        max_output_tokens=0,
        truncation=_truncation(effect.truncation),
    )


def reply_request(effect: StartReply) -> ReplyRequest:
    return ReplyRequest(
        request_id=effect.request,
        messages=tuple(_message(message) for message in effect.messages),
        urgency=Urgency.DRAFT if effect.draft else Urgency.FIRST_AUDIO,
        speak=effect.speak,
        voice=effect.voice,
        speed=effect.speed,
        tools=_tools(effect.tools),
        tool_choice=_tool_choice(effect.tool_choice),
        max_output_tokens=effect.max_output_tokens,
        text=effect.text,
        parallel_tool_calls=effect.parallel_tool_calls,
        truncation=_truncation(effect.truncation),
    )


def _truncation(chosen: ChosenTruncation) -> Truncation:
    match chosen.mode:
        case TruncationMode.AUTO:
            return Truncation()
        case TruncationMode.DISABLED:
            return Truncation(may_drop=False)
        case TruncationMode.RETENTION_RATIO:
            return Truncation(
                keep_share=chosen.retention_ratio, limit_tokens=chosen.post_instructions_tokens
            )


def _tools(tools: tuple[Tool, ...]) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(tool.name, tool.description, tool.parameters_json) for tool in tools)


def _message(message: PromptMessage) -> Message:
    calls = tuple(ToolCall(call.call_id, call.name, call.arguments) for call in message.calls)
    # A role of a conversation's item is an enum member, which no other process would know.
    return Message(str(message.role), message.text, calls, message.call_id)


def _tool_choice(choice: ToolChoice) -> str:
    """The stages name a forced tool where the wire has a mode of its own.

    No tool is called like a mode: the wire refuses it.
    """
    if choice.mode is ToolMode.FUNCTION and choice.name is not None:
        return choice.name
    return choice.mode.value
