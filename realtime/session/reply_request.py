"""How a reply is asked for: what holds for the response, and the prompt it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.session.effects import PromptMessage, StartReply
from realtime.session.items import Item, ItemReference
from realtime.session.prompt import build_prompt
from realtime.session.reply import Reply
from realtime.session.response import ResponseShape
from realtime.session.settings import Modality, ResponseOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from realtime.session.context import Context

STANDARD = ResponseOptions()


def shape_response(ctx: Context, options: ResponseOptions = STANDARD) -> ResponseShape:
    """The session's settings under the client's overrides."""
    settings = ctx.settings
    if options.unlimited_output:
        max_output_tokens = None
    else:
        max_output_tokens = options.max_output_tokens or settings.max_output_tokens
    return ResponseShape(
        modality=options.modality or settings.modality,
        voice=options.voice or settings.voice,
        output_format=options.output_format or settings.output_format,
        max_output_tokens=max_output_tokens,
        metadata=options.metadata,
        out_of_band=options.out_of_band,
    )


def start_reply(
    ctx: Context,
    shape: ResponseShape,
    options: ResponseOptions = STANDARD,
    closing: str | None = None,
    text: str | None = None,
    unsaid: Item | None = None,
    draft: bool = False,
) -> Reply:
    """Start the stages on a reply and return where its outputs gather.

    text: what is to be said, where nothing needs to be written.
    unsaid: an item that is not in the conversation yet; a draft answers it.
    """
    settings = ctx.settings
    request = ctx.ids.next_request("draft" if draft else "reply")
    speaks = shape.modality is Modality.AUDIO
    ctx.emit(
        StartReply(
            request=request,
            draft=draft,
            messages=reply_prompt(ctx, options, closing, unsaid),
            speak=speaks,
            voice=shape.voice,
            speed=settings.speed,
            output_format=shape.output_format,
            tools=settings.tools if options.tools is None else options.tools,
            tool_choice=options.tool_choice or settings.tool_choice,
            max_output_tokens=shape.max_output_tokens,
            truncation=settings.truncation,
            parallel_tool_calls=_first(
                options.parallel_tool_calls, settings.parallel_tool_calls, default=True
            ),
            text=text,
        )
    )
    return Reply(request, speaks, shape.output_format.rate_hz, last_output_ms=ctx.now_ms)


def reply_prompt(
    ctx: Context,
    options: ResponseOptions = STANDARD,
    closing: str | None = None,
    unsaid: Item | None = None,
) -> tuple[PromptMessage, ...]:
    """The messages that a reply of now would be asked with."""
    items = list(_prompt_items(ctx, options))
    if unsaid is not None:
        items.append(unsaid)
    own = options.instructions
    instructions = ctx.settings.instructions if own is None else own
    return build_prompt(instructions, items, ctx.playback, ctx.now_ms, closing)


def _prompt_items(ctx: Context, options: ResponseOptions) -> Iterable[Item]:
    if options.input is None:
        yield from ctx.conversation
        return
    for entry in options.input:
        if isinstance(entry, ItemReference):
            item = ctx.conversation.get(entry.id)
            if item is not None:
                yield item
        elif isinstance(entry, Item):
            yield entry


def _first(*choices: bool | None, default: bool) -> bool:
    return next((choice for choice in choices if choice is not None), default)
