"""What a client asks of the conversation's items and of the session, checked and carried out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from realtime.session.bounds import find_excess_in_update
from realtime.session.conversation import ROOT
from realtime.session.effects import ForgetItemAudio, TrimItemAudio
from realtime.session.items import Item, ItemKind, PartKind, Role
from realtime.session.notices import (
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
    SessionUpdated,
)
from realtime.session.playback import ROUNDING_MS
from realtime.session.tools import unknown_tool

if TYPE_CHECKING:
    from realtime.session.context import Context
    from realtime.session.events import (
        ClientItemCreate,
        ClientItemDelete,
        ClientItemRetrieve,
        ClientItemTruncate,
        ClientSessionUpdate,
    )
    from realtime.session.turns import Turns

# Several times what any language model reads; one client must not fill the server's memory.
MOST_CHARACTERS = 8 * 1024 * 1024


def update_session(ctx: Context, event: ClientSessionUpdate) -> bool:
    """Apply a patch whole or not at all. True: the settings have changed."""
    settings = ctx.settings.patched(event.patch)
    excess = find_excess_in_update(ctx.bounds, event.patch, settings)
    if excess is not None:
        ctx.refuse(excess.code, excess.message, excess.param)
        return False
    if settings.type is not ctx.settings.type:
        ctx.refuse(
            "invalid_parameter",
            f"Passing a {settings.type} session update event to a {ctx.settings.type} session is "
            "not allowed.",
            "session.type",
        )
        return False
    if settings.voice != ctx.settings.voice and ctx.conversation.has_assistant_audio():
        ctx.refuse(
            "cannot_update_voice",
            "Cannot update a conversation's voice if assistant audio is present.",
        )
        return False
    unknown = unknown_tool(settings.tool_choice, settings.tools)
    if unknown is not None:
        chosen = "tool_choice" in dict(event.patch.values)
        ctx.refuse("invalid_value", unknown, f"session.{'tool_choice' if chosen else 'tools'}")
        return False
    has_changed = settings != ctx.settings
    if has_changed:
        ctx.settings = settings
        ctx.settings_version += 1
    ctx.tell(SessionUpdated(ctx.session_id, ctx.settings, ctx.expires_at_s))
    return has_changed


def create_item(ctx: Context, event: ClientItemCreate, turns: Turns) -> None:
    item, previous = event.item, event.previous_item_id
    if item.id and ctx.conversation.is_taken(item.id):
        ctx.refuse(
            "item_create_duplicate_item_id",
            f"Error adding item: an item with id '{item.id}' already exists.",
            "item.id",
        )
        return
    if previous is not None and previous != ROOT and previous not in ctx.conversation:
        ctx.refuse(
            "item_create_invalid_previous_item_id",
            f"Error adding item: the previous item with id '{previous}' does not exist.",
            "previous_item_id",
        )
        return
    if len(ctx.conversation) >= ctx.bounds.items:
        ctx.refuse(
            "conversation_full",
            f"Error adding item: a conversation holds at most {ctx.bounds.items} items. "
            "Delete items, or begin another session.",
            "item",
        )
        return
    if ctx.conversation.size_characters + item.size_characters > MOST_CHARACTERS:
        ctx.refuse(
            "conversation_full",
            f"Error adding item: a conversation holds at most {MOST_CHARACTERS} characters. "
            "Delete items, or begin another session.",
            "item",
        )
        return
    if item.kind is ItemKind.FUNCTION_CALL_OUTPUT and not _answer_call(ctx, item):
        return
    item = replace(
        item,
        id=item.id or ctx.ids.make("item"),
        call_id=item.call_id
        or (ctx.ids.make("call") if item.kind is ItemKind.FUNCTION_CALL else None),
    )
    told_previous = ctx.conversation.insert(item, previous)
    if item.role is Role.USER:
        ctx.has_prompted = False
    ctx.tell(ItemAdded(item, told_previous))
    ctx.tell(ItemDone(item, told_previous))
    for index, part in enumerate(item.parts):
        if part.kind is PartKind.INPUT_AUDIO and part.audio_handle and part.text is None:
            turns.recognise_item(item.id, index, part.audio_handle, part.audio_ms)


def _answer_call(ctx: Context, item: Item) -> bool:
    call_id = item.call_id or ""
    if call_id not in ctx.conversation.call_ids():
        ctx.refuse(
            "invalid_tool_call_id",
            f"Tool call ID '{call_id}' not found in conversation.",
            "item.call_id",
        )
        return False
    if ctx.conversation.is_answered(call_id):
        ctx.refuse(
            "tool_call_already_answered",
            f"Tool call ID '{call_id}' has an output already.",
            "item.call_id",
        )
        return False
    ctx.settle_tool(call_id)
    return True


def retrieve_item(ctx: Context, event: ClientItemRetrieve) -> None:
    item = ctx.conversation.get(event.item_id)
    if item is None:
        ctx.refuse(
            "item_retrieve_invalid_item_id",
            f"Error retrieving item: the item with id '{event.item_id}' does not exist.",
            "item_id",
        )
    else:
        ctx.tell(ItemRetrieved(item))


def delete_item(ctx: Context, event: ClientItemDelete, turns: Turns) -> None:
    item = ctx.conversation.get(event.item_id)
    if item is None:
        ctx.refuse(
            "item_delete_invalid_item_id",
            f"Error deleting item: the item with id '{event.item_id}' does not exist.",
            "item_id",
        )
        return
    if item.kind is ItemKind.FUNCTION_CALL and item.call_id is not None:
        ctx.settle_tool(item.call_id)
    ctx.conversation.remove(item.id)
    ctx.playback.forget(item.id)
    ctx.emit(ForgetItemAudio(item.id))
    ctx.tell(ItemDeleted(item.id))
    turns.forget_item(item.id)


def truncate_item(ctx: Context, event: ClientItemTruncate) -> bool:
    """True: it was cut."""
    item = ctx.conversation.get(event.item_id)
    if item is None:
        ctx.refuse(
            "item_truncate_invalid_item_id",
            f"Item with item_id not found: {event.item_id}",
            "item_id",
        )
        return False
    index = event.content_index
    is_audio = (
        item.role is Role.ASSISTANT
        and 0 <= index < len(item.parts)
        and item.parts[index].kind is PartKind.OUTPUT_AUDIO
    )
    track = ctx.playback.get(item.id)
    if not is_audio or track is None:
        ctx.refuse(None, "Only model output audio messages can be truncated")
        return False
    if event.audio_end_ms < 0:
        ctx.refuse(
            "invalid_value",
            f"Invalid value: {event.audio_end_ms}. Expected 0 ms or more.",
            "audio_end_ms",
        )
        return False
    limit_ms = track.sent_ms if track.cut_ms is None else track.cut_ms
    if event.audio_end_ms > limit_ms + ROUNDING_MS + track.padding_ms:
        ctx.refuse(
            "invalid_value",
            f"Audio content of {int(limit_ms)}ms is already shorter than {event.audio_end_ms}ms",
            "audio_end_ms",
        )
        return False
    audio_ms = min(event.audio_end_ms, int(limit_ms))
    ctx.playback.cut(track, audio_ms, ctx.now_ms)
    ctx.conversation.update(ctx.cut_item(item))
    ctx.emit(TrimItemAudio(item.id, audio_ms))
    ctx.tell(ItemTruncated(item.id, index, event.audio_end_ms))
    return True
