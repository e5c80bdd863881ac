"""Responses that no spoken turn asked for: the client's, and the one that breaks a silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.session.bounds import find_excess
from realtime.session.context import NOTHING_CUT_OFF, Context, CutOff
from realtime.session.creation import Creation
from realtime.session.deadlines import Due
from realtime.session.items import Item, ItemKind, ItemReference, Part, PartKind, Role
from realtime.session.notices import InputCommitted, ItemAdded, ItemDone, TimeoutTriggered
from realtime.session.policy import SAMPLES_PER_MS
from realtime.session.prompt import STILL_THERE
from realtime.session.settings import ServerVad, SessionType
from realtime.session.states import Listening
from realtime.session.table import Say
from realtime.session.tools import unknown_tool

if TYPE_CHECKING:
    from realtime.session.events import (
        ClientItemTruncate,
        ClientResponseCancel,
        ClientResponseCreate,
    )
    from realtime.session.listening import ListeningRegion
    from realtime.session.settings import ResponseOptions
    from realtime.session.side import SideResponses
    from realtime.session.speaking import SpeakingRegion
    from realtime.session.turns import Turns

# SDKs truncate and cancel in one breath; the first has ended the response.
ONE_BREATH_MS = 1000


def create_response(
    ctx: Context,
    event: ClientResponseCreate,
    speaking: SpeakingRegion,
    side: SideResponses,
    turns: Turns,
) -> None:
    options = event.options
    if ctx.settings.type is SessionType.TRANSCRIPTION:
        ctx.refuse("invalid_parameter", "A transcription session has no responses.", "type")
        return
    excess = find_excess(ctx.bounds, options.instructions, options.tools, "response")
    if excess is not None:
        ctx.refuse(excess.code, excess.message, excess.param)
        return
    for index, entry in enumerate(options.input or ()):
        if isinstance(entry, ItemReference) and entry.id not in ctx.conversation:
            ctx.refuse(
                "invalid_value",
                f"Item reference '{entry.id}' not found in conversation.",
                f"response.input[{index}].id",
            )
            return
    if (
        options.voice is not None
        and not options.out_of_band
        and options.voice != ctx.settings.voice
        and ctx.conversation.has_assistant_audio()
    ):
        ctx.refuse(
            "cannot_update_voice",
            "Cannot update a conversation's voice if assistant audio is present.",
        )
        return
    unknown = unknown_tool(
        options.tool_choice or ctx.settings.tool_choice,
        ctx.settings.tools if options.tools is None else options.tools,
    )
    if unknown is not None:
        chosen = "tools" if options.tool_choice is None else "tool_choice"
        ctx.refuse("invalid_value", unknown, f"response.{chosen}")
        return
    waits_for = _awaited_texts(options, turns)
    if options.out_of_band:
        side.create(options, waits_for)
    else:
        speaking.answer(Say.CREATE, Creation(options, waits_for=waits_for))


def _awaited_texts(options: ResponseOptions, turns: Turns) -> frozenset[str]:
    """Items of the prompt whose text is still to come."""
    awaited = turns.untranscribed
    if options.input is not None:
        awaited &= {entry.id for entry in options.input if isinstance(entry, ItemReference)}
    return frozenset(awaited)


def cancel_response(
    event: ClientResponseCancel, speaking: SpeakingRegion, side: SideResponses
) -> None:
    wanted, ctx = event.response_id, speaking.ctx
    if wanted in (None, ctx.cut_off.response_id) and ctx.now_ms - ctx.cut_off.at_ms < ONE_BREATH_MS:
        ctx.cut_off = NOTHING_CUT_OFF
        return
    if wanted is not None and wanted in side:
        side.cancel(wanted)
    elif wanted is None or (speaking.response is not None and speaking.response.id == wanted):
        speaking.fire(Say.CANCEL)
    else:
        speaking.reject("response_cancel_not_active")


def stop_if_truncated(event: ClientItemTruncate, speaking: SpeakingRegion) -> None:
    """A listener who cuts the reply that is being said wants no more of it."""
    ctx, response = speaking.ctx, speaking.response
    if response is not None and not response.is_done and response.message_item_id == event.item_id:
        ctx.cut_off = CutOff(response.id, ctx.now_ms)
        speaking.fire(Say.CANCEL)
    elif ctx.deadlines.armed(Due.PLAYBACK_END):
        ctx.deadlines.arm(Due.PLAYBACK_END, ctx.playback.end_ms)  # sooner, by what was cut away


def watch_for_idleness(
    ctx: Context, listening: ListeningRegion, speaking: SpeakingRegion, turns: Turns
) -> None:
    """The idle timer runs exactly while a reply is heard out, and nobody speaks or works.

    It never follows itself: after one prompt it waits for a sign of the user.
    """
    detection = ctx.settings.turn_detection
    if (
        isinstance(detection, ServerVad)
        and detection.idle_timeout_ms is not None
        and speaking.has_answered
        and not ctx.has_prompted
        and listening.state in (Listening.QUIET, Listening.ONSET_QUIET)
        and not turns.is_concluding
        and not ctx.tools.is_waiting
    ):
        if not ctx.deadlines.armed(Due.IDLE):
            ctx.deadlines.arm(Due.IDLE, ctx.now_ms + detection.idle_timeout_ms)
    else:
        ctx.deadlines.disarm(Due.IDLE)


def prompt_idle_user(ctx: Context, listening: ListeningRegion, speaking: SpeakingRegion) -> None:
    """The user has been silent for the session's idle timeout: commit an empty turn, ask."""
    if listening.state is not Listening.QUIET:
        return  # perhaps they are about to speak; if not, the timer runs anew
    start, end = listening.buffer_start, ctx.position
    item = Item(
        ctx.ids.make("item"),
        ItemKind.MESSAGE,
        role=Role.USER,
        parts=(Part(PartKind.INPUT_AUDIO, text=""),),
    )
    ctx.tell(TimeoutTriggered(item.id, start // SAMPLES_PER_MS, end // SAMPLES_PER_MS))
    previous = ctx.conversation.insert(item)
    listening.buffer_start = end
    ctx.has_prompted = True
    ctx.tell(InputCommitted(item.id, previous))
    ctx.tell(ItemAdded(item, previous))
    ctx.tell(ItemDone(item, previous))
    speaking.answer(Say.COMMIT, Creation(closing=STILL_THERE))
