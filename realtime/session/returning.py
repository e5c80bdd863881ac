"""What a lost client has heard, and what it finds and is owed when it comes back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from realtime.session.creation import Creation
from realtime.session.effects import TellConversation, TrimItemAudio
from realtime.session.items import ItemStatus
from realtime.session.prompt import RECONNECTED, heard_text
from realtime.session.response import WORTH_CONTINUING_MS

if TYPE_CHECKING:
    from realtime.session.context import Context
    from realtime.session.events import Disconnected
    from realtime.session.items import Item
    from realtime.session.speaking import SpeakingRegion


def silence(ctx: Context, event: Disconnected) -> float:
    """Stop all playing and return when, on the shell's clock, the client heard its last."""
    for item_id, samples in event.unsent:
        ctx.playback.take_back(item_id, samples)
    lost_at_ms = ctx.flow.last_sign_ms(ctx.now_ms) if event.is_silent else ctx.now_ms
    ctx.playback.stop(lost_at_ms)
    return lost_at_ms


def find_rest(
    ctx: Context, speaking: SpeakingRegion, lost_at_ms: float, was_busy: bool
) -> Creation | None:
    """What makes up for replies that the loss broke off: their rest, or all of it.

    was_busy: whether a response was running.
    """
    response = speaking.response
    running = response.message_item_id if response is not None else None

    def is_broken(item: Item) -> bool:
        track = ctx.playback.get(item.id)
        if track is None:
            return was_busy and item.id == running  # a text in mid-sentence
        if track.stopped_at_ms != lost_at_ms or track.cut_ms is not None:
            return False
        if response is not None and item.id == running:
            return response.is_worth_continuing(ctx)
        return track.sent_ms - track.heard_ms(ctx.now_ms) >= WORTH_CONTINUING_MS

    broken = next(filter(is_broken, ctx.conversation), None)
    made_as = speaking.creation
    if broken is None:
        # Half a call, and nothing said: nobody can answer it, so it is made anew.
        is_unsaid = was_busy and running is None and response is not None and response.has_words
        return made_as if is_unsaid else None
    options = replace(made_as.options, input=None, tool_choice=None)
    heard = heard_text(broken, ctx.playback, ctx.now_ms)
    rest = response.unheard(heard) if response is not None and broken.id == running else None
    if heard:
        return Creation(options, closing=RECONNECTED, text=rest)
    return Creation(options, closing=made_as.closing if broken.id == running else None, text=rest)


def cut_to_heard(ctx: Context) -> None:
    """From here on the conversation holds no word of the voice that nobody has heard."""
    for item in list(ctx.conversation):
        track = ctx.playback.get(item.id)
        if track is None or track.stopped_at_ms is None or track.cut_ms is not None:
            continue
        track.cut_ms = int(track.heard_ms(ctx.now_ms))
        ctx.conversation.update(replace(ctx.cut_item(item), status=ItemStatus.INCOMPLETE))
        ctx.emit(TrimItemAudio(item.id, track.cut_ms))


def tell_conversation(ctx: Context) -> None:
    items = list(ctx.conversation)
    before = (None, *(item.id for item in items))
    if items:
        ctx.emit(TellConversation(tuple(zip(items, before, strict=False))))
